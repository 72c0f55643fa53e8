use proptest::prelude::*;

use super::{MAX_ENCRYPTED_BYTES, validate, validate_delete};
use crate::kinds::Rules;
use crate::kinds::deployment::{AutoscalingInput, DeploymentInput, ShutdownSignal};
use crate::testing::{minimal_input, valid_input};

type Change = fn(&mut DeploymentInput);

/// The field that is named as invalid; "" when there is none.
fn invalid_field(change: Change) -> String {
    let mut input = minimal_input();
    change(&mut input);
    invalid_field_of(input)
}

fn rules() -> Rules {
    Rules::new("unkey")
}

fn invalid_field_of(input: DeploymentInput) -> String {
    validate(input, &rules())
        .err()
        .map(|invalid| invalid.field)
        .unwrap_or_default()
}

#[test]
fn each_required_field_is_missed_by_name() {
    let rows: [(&str, Change); 9] = [
        ("workspace_id", |input| input.workspace_id.clear()),
        ("project_id", |input| input.project_id.clear()),
        ("environment_id", |input| input.environment_id.clear()),
        ("deployment_id", |input| input.deployment_id.clear()),
        ("k8s_namespace", |input| input.k8s_namespace.clear()),
        ("k8s_name", |input| input.k8s_name.clear()),
        ("image", |input| input.image = " ".to_owned()),
        ("cpu_millicores", |input| input.cpu_millicores = 0),
        ("memory_mib", |input| input.memory_mib = 0),
    ];
    for (field, change) in rows {
        assert_eq!(invalid_field(change), field);
    }
    // Of several missing fields the first in the order of the protocol is named.
    assert_eq!(invalid_field_of(DeploymentInput::default()), "workspace_id");
}

/// xlab-uiuc/acto, bugs.md (C12): zero, negative and huge numbers crash or overflow.
#[test]
fn odd_numbers_are_refused_by_name_or_have_a_meaning() {
    let rows: [(&str, Change); 13] = [
        ("replicas", |input| input.replicas = -1),
        ("", |input| input.replicas = 0),
        ("", |input| input.replicas = 1000),
        ("replicas", |input| input.replicas = 1001),
        ("replicas", |input| input.replicas = i32::MAX),
        ("cpu_millicores", |input| input.cpu_millicores = -5),
        ("cpu_millicores", |input| input.cpu_millicores = i64::MAX),
        ("memory_mib", |input| input.memory_mib = i64::MIN),
        ("memory_mib", |input| input.memory_mib = i64::MAX),
        ("", |input| input.port = 0),
        ("", |input| input.port = i32::MIN),
        ("port", |input| input.port = 65_536),
        ("port", |input| input.port = 70_000),
    ];
    for (index, (field, change)) in rows.into_iter().enumerate() {
        assert_eq!(invalid_field(change), field, "row {index}");
    }
    let desired = validate(minimal_input(), &Rules::default());
    assert_eq!(desired.map(|desired| desired.port), Ok(8080));
}

#[test]
fn autoscaling_bounds_must_be_bounds() {
    let with = |min_replicas, max_replicas| {
        invalid_field_of(DeploymentInput {
            autoscaling: Some(AutoscalingInput {
                min_replicas,
                max_replicas,
                ..AutoscalingInput::default()
            }),
            ..minimal_input()
        })
    };
    assert_eq!(with(1, 1), "");
    assert_eq!(with(0, 1), "autoscaling.min_replicas");
    assert_eq!(with(2, 1), "autoscaling.max_replicas");
    assert_eq!(with(1, 1001), "autoscaling.max_replicas");
    assert_eq!(with(u32::MAX, u32::MAX), "autoscaling.max_replicas");
}

#[test]
fn autoscaling_targets_are_percents_and_may_be_left_out() {
    let with = |cpu_threshold, memory_threshold| {
        invalid_field_of(DeploymentInput {
            autoscaling: Some(AutoscalingInput {
                min_replicas: 1,
                max_replicas: 2,
                cpu_threshold,
                memory_threshold,
            }),
            ..minimal_input()
        })
    };
    assert_eq!(with(None, None), "");
    assert_eq!(with(Some(1), Some(i32::MAX)), "");
    assert_eq!(with(Some(0), None), "autoscaling.cpu_threshold");
    assert_eq!(with(Some(i32::MIN), None), "autoscaling.cpu_threshold");
    assert_eq!(with(None, Some(-80)), "autoscaling.memory_threshold");
}

#[test]
fn the_size_of_an_ephemeral_volume_is_positive_and_possible() {
    let with = |size| {
        invalid_field_of(DeploymentInput {
            ephemeral_storage_mib: Some(size),
            ..minimal_input()
        })
    };
    let largest = 64 << 20;
    assert_eq!([with(1), with(largest)], ["", ""]);
    for size in [0, -1, i64::MIN, largest + 1, i64::MAX] {
        assert_eq!(with(size), "ephemeral_storage.size_mib", "{size}");
    }
}

/// rhobs/observability-operator PR #1113, Azure/azure-service-operator#4734 (B31): label values the
/// API server refuses on every try.
#[test]
fn ids_that_no_label_can_hold_are_refused_by_name() {
    let rows: [(&str, Change); 9] = [
        ("workspace_id", |input| input.workspace_id = "w".repeat(64)),
        ("", |input| input.workspace_id = "w".repeat(63)),
        ("project_id", |input| input.project_id = "a/b".to_owned()),
        ("environment_id", |input| {
            input.environment_id = "env-".to_owned();
        }),
        ("environment_id", |input| {
            input.environment_id = "_env".to_owned();
        }),
        ("deployment_id", |input| {
            input.deployment_id = "d 1".to_owned();
        }),
        ("build_id", |input| input.build_id = Some("b\n".to_owned())),
        ("app_id", |input| input.app_id = "äpp".to_owned()),
        ("", |input| input.app_id.clear()),
    ];
    for (index, (field, change)) in rows.into_iter().enumerate() {
        assert_eq!(invalid_field(change), field, "row {index}");
    }
}

#[test]
fn names_must_be_dns_labels() {
    let long = "a".repeat(64);
    for name in [
        "-x",
        "x-",
        "X",
        "sen_abc",
        "a.b",
        "a b",
        "ä",
        long.as_str(),
        "../x",
        "x\0",
    ] {
        let field = |result: Result<_, crate::invalid::Invalid>| {
            result
                .err()
                .map(|invalid| invalid.field)
                .unwrap_or_default()
        };
        assert_eq!(
            field(validate_delete("ns", name, &rules())),
            "k8s_name",
            "{name}"
        );
        assert_eq!(
            field(validate_delete(name, "dep", &rules())),
            "k8s_namespace",
            "{name}"
        );
    }
    assert!(validate_delete("0ns", &"a".repeat(63), &rules()).is_ok());
    assert!(validate_delete("", "dep", &rules()).is_err());
    assert!(validate_delete("ns", "", &rules()).is_err());
}

/// D15: nobody deploys into the cluster's, krane's or the sentinels' namespaces.
#[test]
fn reserved_namespaces_are_invalid() {
    for namespace in ["kube-system", "kube-x", "default", "sentinel", "unkey"] {
        let input = DeploymentInput {
            k8s_namespace: namespace.to_owned(),
            ..minimal_input()
        };
        assert_eq!(invalid_field_of(input), "k8s_namespace", "{namespace}");
    }
    for namespace in ["kube", "krane", "defaults"] {
        let input = DeploymentInput {
            k8s_namespace: namespace.to_owned(),
            ..minimal_input()
        };
        assert_eq!(invalid_field_of(input), "", "{namespace}");
    }
    for namespace in ["kube-system", "default", "sentinel", "unkey"] {
        assert!(
            validate_delete(namespace, "x", &rules()).is_err(),
            "{namespace}"
        );
    }
}

#[test]
fn images_must_look_like_references() {
    for image in [
        "nginx",
        "localhost:5000/a/b:1.2_x-",
        "[::1]:5000/a@sha256:00",
        "registry.depot.dev/x/y@sha256+b64:0",
    ] {
        let input = DeploymentInput {
            image: image.to_owned(),
            ..minimal_input()
        };
        assert_eq!(invalid_field_of(input), "", "{image}");
    }
    let long = "a".repeat(1025);
    for image in [
        "",
        "a b",
        "-a",
        "a:",
        "a/",
        "a\n",
        "a;b",
        "$(a)",
        long.as_str(),
    ] {
        let input = DeploymentInput {
            image: image.to_owned(),
            ..minimal_input()
        };
        assert_eq!(invalid_field_of(input), "image", "{image}");
    }
}

#[test]
fn four_signals_are_known() {
    for (signal, expected) in [
        ("", None),
        ("SIGTERM", None),
        ("SIGINT", Some(ShutdownSignal::Interrupt)),
        ("SIGQUIT", Some(ShutdownSignal::Quit)),
        ("SIGKILL", Some(ShutdownSignal::Kill)),
    ] {
        let input = DeploymentInput {
            shutdown_signal: signal.to_owned(),
            ..minimal_input()
        };
        let desired = validate(input, &Rules::default());
        assert_eq!(desired.map(|desired| desired.shutdown_signal), Ok(expected));
    }
    for signal in ["sigint", "INT", "SIGUSR1", "-9", "SIGINT;rm"] {
        let input = DeploymentInput {
            shutdown_signal: signal.to_owned(),
            ..minimal_input()
        };
        let invalid = validate(input, &Rules::default())
            .map(|_| ())
            .map_err(|i| i.to_string());
        let text = invalid.err().unwrap_or_default();
        for known in ["SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL"] {
            assert!(
                text.starts_with("shutdown_signal: ") && text.contains(known),
                "{text}"
            );
        }
    }
}

/// mogenius/renovate-operator#616, aquasecurity/trivy-operator#757 (B32): an object over the size limit is tried for ever.
#[test]
fn encrypted_variables_too_big_for_an_object_are_refused() {
    let with = |bytes| {
        invalid_field_of(DeploymentInput {
            encrypted_environment_variables: vec![0; bytes],
            ..minimal_input()
        })
    };
    assert_eq!(with(MAX_ENCRYPTED_BYTES), "");
    assert_eq!(
        with(MAX_ENCRYPTED_BYTES + 1),
        "encrypted_environment_variables"
    );
}

#[test]
fn an_unreadable_healthcheck_is_a_warning() {
    let input = DeploymentInput {
        healthcheck: Some(b"{".to_vec()),
        ..minimal_input()
    };
    let desired = validate(input, &Rules::default()).unwrap_or_else(|invalid| panic!("{invalid}"));
    assert_eq!(desired.healthcheck, None);
    assert_eq!(desired.warnings.len(), 1);
}

#[test]
fn nul_characters_never_reach_a_process() {
    assert_eq!(
        invalid_field(|input| input.command = vec!["a\0".to_owned()]),
        "command"
    );
    let input = DeploymentInput {
        git_branch: Some("a\0b".to_owned()),
        ..minimal_input()
    };
    let desired = validate(input, &Rules::default()).unwrap_or_else(|invalid| panic!("{invalid}"));
    assert_eq!(
        desired
            .descriptive_variables
            .get("UNKEY_GIT_BRANCH")
            .map(String::as_str),
        Some("ab")
    );
}

#[test]
fn no_debug_output_holds_what_tenants_sent() {
    let input = DeploymentInput {
        encrypted_environment_variables: b"canary-1".to_vec(),
        command: vec!["canary-2".to_owned()],
        git_commit_message: Some("canary-3".to_owned()),
        ..minimal_input()
    };
    let before = format!("{input:?}");
    let desired = validate(input, &Rules::default());
    let text = format!("{before}{desired:?}");
    assert!(
        !text.contains("canary") && !text.contains("99, 97"),
        "{text}"
    );
}

fn any_input() -> impl Strategy<Value = DeploymentInput> {
    let text = || {
        prop_oneof![
            Just(String::new()),
            "\\PC{0,80}",
            ".{0,5}",
            "[a-z0-9-]{0,70}"
        ]
    };
    let texts = [
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
    ];
    let bytes = || prop::collection::vec(any::<u8>(), 0..50);
    let numbers = (any::<i32>(), any::<i64>(), any::<i64>(), any::<i32>());
    let policy = prop::option::of((any::<u32>(), any::<u32>()));
    (
        valid_input(),
        texts,
        numbers,
        bytes(),
        bytes(),
        policy,
        any::<u16>(),
    )
        .prop_map(
            |(mut input, texts, numbers, healthcheck, blob, policy, mask)| {
                let [
                    namespace,
                    name,
                    workspace,
                    project,
                    environment,
                    deployment,
                    image,
                    app,
                    signal,
                ] = texts;
                let mut set = |bit: u32, change: &mut dyn FnMut(&mut DeploymentInput)| {
                    if mask & (1 << bit) != 0 {
                        change(&mut input);
                    }
                };
                set(0, &mut |input| input.k8s_namespace.clone_from(&namespace));
                set(1, &mut |input| input.k8s_name.clone_from(&name));
                set(2, &mut |input| input.workspace_id.clone_from(&workspace));
                set(3, &mut |input| input.project_id.clone_from(&project));
                set(4, &mut |input| {
                    input.environment_id.clone_from(&environment);
                });
                set(5, &mut |input| input.deployment_id.clone_from(&deployment));
                set(6, &mut |input| input.image.clone_from(&image));
                set(7, &mut |input| input.app_id.clone_from(&app));
                set(8, &mut |input| input.shutdown_signal.clone_from(&signal));
                set(9, &mut |input| input.replicas = numbers.0);
                set(10, &mut |input| input.cpu_millicores = numbers.1);
                set(11, &mut |input| input.memory_mib = numbers.2);
                set(12, &mut |input| input.port = numbers.3);
                set(13, &mut |input| {
                    input.healthcheck = Some(healthcheck.clone());
                });
                set(14, &mut |input| {
                    input.encrypted_environment_variables.clone_from(&blob);
                });
                set(15, &mut |input| {
                    input.autoscaling =
                        policy.map(|(min_replicas, max_replicas)| AutoscalingInput {
                            min_replicas,
                            max_replicas,
                            cpu_threshold: (numbers.0 % 2 == 0).then_some(numbers.0),
                            memory_threshold: (numbers.3 % 2 == 0).then_some(numbers.3),
                        });
                    input.ephemeral_storage_mib = Some(numbers.1);
                });
                input
            },
        )
}

proptest! {
    #[test]
    fn valid_messages_are_valid(input in valid_input()) {
        prop_assert_eq!(invalid_field_of(input), "");
    }

    #[test]
    fn no_message_panics_and_every_refusal_is_explained(input in any_input()) {
        if let Err(invalid) = validate(input, &Rules::default()) {
            prop_assert!(!invalid.field.is_empty());
            prop_assert!(!invalid.problem.is_empty() && !invalid.remedy.is_empty());
            prop_assert!(!invalid.to_string().chars().any(char::is_control), "{}", invalid);
        }
    }
}
