mod golden;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::render;
use crate::drift::{Decision, decide};
use crate::kinds::deployment::{AutoscalingInput, DeploymentInput, FIELD_TABLE, ProtoField};
use crate::kinds::deployment::{dependants, validate};
use crate::kinds::{Password, ProbePaths, PullSecret, Region, ReportAddress, Rules};
use crate::object::Rendered;
use crate::testing::{applied, check_lists, lookup, minimal_input, scaled_input, valid_input};

const CONTAINER: &str = "spec.template.spec.containers[name=deployment]";

fn body_by(input: DeploymentInput, rules: &Rules) -> Value {
    let desired = validate(input, rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    render(&desired, rules, None).body
}

fn body(input: DeploymentInput) -> Value {
    body_by(input, &Rules::default())
}

fn at<'a>(body: &'a Value, path: &str) -> &'a Value {
    lookup(body, path).unwrap_or_else(|| panic!("nothing at {path}"))
}

/// The autoscaler of a workload that was applied under this uid.
fn autoscaler(input: DeploymentInput) -> Value {
    let rules = Rules::default();
    let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    let owner = applied(&render(&desired, &rules, None), "uid-1", 7);
    let owner = owner.unwrap_or_else(|error| panic!("{error}"));
    dependants(&desired, &owner).remove(0).body
}

fn all_rules() -> Rules {
    Rules {
        pull_secret: Some(PullSecret {
            url: "registry.example".to_owned(),
            username: "user".to_owned(),
            password: Password::new("password"),
        }),
        secrets_audience: Some("krane".into()),
        ..Rules::default()
    }
}

/// unkeyed/unkey a5090098c3, PR #5522; abe88a68b0, PR #5527; 5df245f7b8 (A13): memory in MiB was
/// handed over as bytes, and limits went missing.
#[test]
fn limits_are_millicores_and_mebibytes_and_requests_never_exceed_them() {
    for (cpu, memory, limits, requests) in [
        (250, 512, ["250m", "512Mi"], ["62m", "128Mi"]),
        (1000, 2048, ["1000m", "2048Mi"], ["250m", "512Mi"]),
        (1, 1, ["1m", "1Mi"], ["1m", "1Mi"]),
    ] {
        let body = body(DeploymentInput {
            cpu_millicores: cpu,
            memory_mib: memory,
            ..minimal_input()
        });
        let resources = at(&body, &format!("{CONTAINER}.resources"));
        let pair = |[cpu, memory]: [&str; 2]| json!({ "cpu": cpu, "memory": memory });
        assert_eq!(
            *resources,
            json!({ "limits": pair(limits), "requests": pair(requests) })
        );
    }
}

#[test]
fn the_request_divisor_is_a_setting_and_never_zero() {
    for (divisor, cpu) in [(1, "250m"), (2, "125m"), (1000, "1m"), (0, "250m")] {
        let rules = Rules {
            request_divisor: divisor,
            ..Rules::default()
        };
        let body = body_by(minimal_input(), &rules);
        assert_eq!(
            *at(&body, &format!("{CONTAINER}.resources.requests.cpu")),
            json!(cpu)
        );
    }
}

/// unkeyed/unkey 152f760a48, PR #6561; 01902778cf; 58f79d68ca (A17): a toleration that does not
/// match the taint leaves pods pending for ever.
#[test]
fn the_toleration_is_the_one_of_the_untrusted_pool() {
    let expected = json!([{
        "key": "karpenter.sh/nodepool",
        "operator": "Equal",
        "value": "untrusted",
        "effect": "NoSchedule",
    }]);
    assert_eq!(
        *at(&body(minimal_input()), "spec.template.spec.tolerations"),
        expected
    );
}

/// unkeyed/unkey 04e46f567a, fa3c831bbf, PR #4706 (A55): raw bytes in a variable broke the object.
#[test]
fn encrypted_variables_are_padded_base64_of_the_same_bytes() {
    let path = format!("{CONTAINER}.env[name=UNKEY_ENCRYPTED_ENV]");
    let bytes: Vec<u8> = (0..=255).collect();
    let with = body(DeploymentInput {
        encrypted_environment_variables: bytes.clone(),
        ..minimal_input()
    });
    let text = at(&with, &format!("{path}.value"))
        .as_str()
        .unwrap_or_default();
    assert_eq!(STANDARD.decode(text), Ok(bytes));
    assert!(text.ends_with("=="), "padded");
    assert_eq!(lookup(&body(minimal_input()), &path), None);
}

/// kubernetes/kubernetes#131147 (B22): the port number is the key of its list.
#[test]
fn a_changed_port_replaces_the_old_one() {
    let body = body(DeploymentInput {
        port: 9090,
        ..minimal_input()
    });
    let ports = json!([{ "containerPort": 9090, "protocol": "TCP", "name": "deployment" }]);
    assert_eq!(*at(&body, &format!("{CONTAINER}.ports")), ports);
    assert_eq!(
        *at(&body, &format!("{CONTAINER}.env[name=PORT].value")),
        json!("9090")
    );
}

/// kubernetes/kubernetes#101137, #75907 (B30): the kubelet expands `$(NAME)` and `$$`.
#[test]
fn variables_reach_the_process_literally_and_commands_verbatim() {
    let command = vec!["echo".to_owned(), "$(PORT)".to_owned(), "$$HOME".to_owned()];
    let body = body(DeploymentInput {
        command: command.clone(),
        git_branch: Some("$(PATH) $$ $".to_owned()),
        ..minimal_input()
    });
    assert_eq!(*at(&body, &format!("{CONTAINER}.command")), json!(command));
    let value = at(
        &body,
        &format!("{CONTAINER}.env[name=UNKEY_GIT_BRANCH].value"),
    );
    assert_eq!(*value, json!("$$(PATH) $$$$ $$"));
}

#[test]
fn an_empty_variable_has_no_value() {
    let body = body(DeploymentInput {
        git_repo: Some(String::new()),
        ..minimal_input()
    });
    let item = at(&body, &format!("{CONTAINER}.env[name=UNKEY_GIT_REPO]"));
    assert_eq!(*item, json!({ "name": "UNKEY_GIT_REPO" }));
}

#[test]
fn sentinels_are_looked_for_where_they_run() {
    let body = body(minimal_input());
    let term = at(
        &body,
        "spec.template.spec.affinity.podAffinity\
         .preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm",
    );
    assert_eq!(term["namespaces"], json!(["sentinel"]));
}

/// D30: with an audience, pods get a token for it and no other.
#[test]
fn the_service_account_token_follows_the_secrets_audience() {
    let plain = body(minimal_input());
    let spec = "spec.template.spec";
    for field in [
        "automountServiceAccountToken",
        "volumes",
        "serviceAccountName",
        "serviceAccount",
    ] {
        assert_eq!(lookup(&plain, &format!("{spec}.{field}")), None, "{field}");
    }
    let body = body_by(minimal_input(), &all_rules());
    assert_eq!(
        *at(&body, &format!("{spec}.automountServiceAccountToken")),
        json!(false)
    );
    let source = json!({ "serviceAccountToken": {
        "audience": "krane", "expirationSeconds": 600, "path": "token",
    } });
    assert_eq!(
        *at(&body, &format!("{spec}.volumes[0].projected.sources[0]")),
        source
    );
    let mount = at(&body, &format!("{CONTAINER}.volumeMounts[0]"));
    assert_eq!(
        mount["mountPath"],
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
}

#[test]
fn the_template_hash_changes_with_the_template_only() {
    let hash = |body: &Value| {
        at(
            body,
            "spec.template.metadata.annotations[\"krane.unkey.com/template\"]",
        )
        .clone()
    };
    let base = hash(&body(minimal_input()));
    assert_eq!(
        hash(&body(DeploymentInput {
            replicas: 5,
            ..minimal_input()
        })),
        base
    );
    let changed = body(DeploymentInput {
        image: "nginx:2".to_owned(),
        ..minimal_input()
    });
    assert_ne!(hash(&changed), base);
    assert_ne!(hash(&body_by(minimal_input(), &all_rules())), base);
}

/// A volume of its own for each pod, beside the token of D30.
#[test]
fn an_ephemeral_volume_is_a_claim_of_the_configured_class_at_data() {
    let rules = Rules {
        storage_class_name: "fast".into(),
        ..all_rules()
    };
    let body = body_by(scaled_input(), &rules);
    let volumes = at(&body, "spec.template.spec.volumes");
    assert_eq!(volumes[0]["name"], "krane-token");
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": { "requests": { "storage": "5120Mi" } },
    });
    let volume =
        json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": claim } } });
    assert_eq!(volumes[1], volume);
    let mounts = at(&body, &format!("{CONTAINER}.volumeMounts"));
    assert_eq!(mounts[1], json!({ "name": "data", "mountPath": "/data" }));
    let env = at(&body, &format!("{CONTAINER}.env")).as_array();
    let path = json!({ "name": "UNKEY_EPHEMERAL_DISK_PATH", "value": "/data" });
    assert_eq!(env.and_then(|env| env.last()), Some(&path));
}

/// Changes one field of a message.
type Change = fn(&mut DeploymentInput);

fn policy(input: &mut DeploymentInput) -> &mut AutoscalingInput {
    let policy = input.autoscaling.as_mut();
    policy.unwrap_or_else(|| panic!("it has one"))
}

/// Those changes, one per field.
fn changes() -> Vec<(&'static str, Change)> {
    vec![
        ("k8s_namespace", |input| {
            input.k8s_namespace = "other".to_owned();
        }),
        ("k8s_name", |input| input.k8s_name = "other".to_owned()),
        ("workspace_id", |input| {
            input.workspace_id = "other".to_owned();
        }),
        ("project_id", |input| input.project_id = "other".to_owned()),
        ("environment_id", |input| {
            input.environment_id = "other".to_owned();
        }),
        ("deployment_id", |input| {
            input.deployment_id = "other".to_owned();
        }),
        ("image", |input| input.image = "other".to_owned()),
        ("replicas", |input| input.replicas = 8),
        ("cpu_millicores", |input| input.cpu_millicores = 100),
        ("memory_mib", |input| input.memory_mib = 100),
        ("build_id", |input| input.build_id = None),
        ("encrypted_environment_variables", |input| {
            input.encrypted_environment_variables.push(0);
        }),
        ("command", |input| input.command.clear()),
        ("port", |input| input.port = 0),
        ("shutdown_signal", |input| input.shutdown_signal.clear()),
        ("healthcheck", |input| input.healthcheck = None),
        ("app_id", |input| input.app_id.clear()),
        ("environment_slug", |input| input.environment_slug = None),
        ("region", |input| input.region = Some(String::new())),
        ("git_commit_sha", |input| input.git_commit_sha = None),
        ("git_branch", |input| input.git_branch = None),
        ("git_repo", |input| input.git_repo = None),
        ("git_commit_message", |input| {
            input.git_commit_message = None;
        }),
        ("autoscaling.min_replicas", |input| {
            policy(input).min_replicas = 2;
        }),
        ("autoscaling.max_replicas", |input| {
            policy(input).max_replicas = 20;
        }),
        ("autoscaling.cpu_threshold", |input| {
            policy(input).cpu_threshold = None;
        }),
        ("autoscaling.memory_threshold", |input| {
            policy(input).memory_threshold = None;
        }),
        ("ephemeral_storage", |input| {
            input.ephemeral_storage_mib = None;
        }),
    ]
}

/// xlab-uiuc/acto, bugs.md (C10): a changed field does nothing, or changing it back does not
/// restore the former state.
#[test]
fn every_field_has_an_effect_that_changing_it_back_undoes() {
    let objects = |input: DeploymentInput| (body(input.clone()), autoscaler(input));
    let base = objects(scaled_input());
    for (field, change) in changes() {
        let mut input = scaled_input();
        change(&mut input);
        assert_ne!(objects(input), base, "{field} has no effect");
        assert_eq!(objects(scaled_input()), base, "{field}");
    }
}

/// A path without what tells the items of a list apart; variables keep their names.
fn without_keys(path: &str) -> String {
    let mut plain = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let (item, after) = after.split_once(']').unwrap_or_default();
        if item.starts_with('"') || before.ends_with("env") {
            plain.push_str(item);
        }
        rest = after;
    }
    plain + rest
}

/// xlab-uiuc/acto, bugs.md (C10): a changed field changes what it is documented to change, and
/// nothing else.
#[test]
fn a_changed_field_changes_its_documented_places_only() {
    let rules = Rules::default();
    let objects = |input: DeploymentInput| {
        let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
        let workload = render(&desired, &rules, None);
        let owner = applied(&workload, "uid-1", 7).unwrap_or_else(|error| panic!("{error}"));
        let autoscaler = dependants(&desired, &owner).remove(0);
        [workload, autoscaler]
    };
    let changed_paths = |before: &Rendered, after: &Rendered| -> Vec<String> {
        let live = applied(before, "uid-1", 7).unwrap_or_else(|error| panic!("{error}"));
        match decide(after, Some(&live), None, 0) {
            // In the selector is the id.
            Decision::InPlace | Decision::Recreate { .. } => Vec::new(),
            Decision::Update { differences, .. } => {
                let paths = differences.into_iter();
                paths.map(|difference| difference.path).collect()
            }
            Decision::Create
            | Decision::Adopt { .. }
            | Decision::Terminating
            | Decision::NotOurs
            | Decision::Held { .. }
            | Decision::Refuse(_) => panic!("neither in place nor to be changed"),
        }
    };
    let places: [fn(&ProtoField) -> &'static [&'static str]; 2] =
        [|field| field.places, |field| field.autoscaler_places];
    let hash = "spec.template.metadata.annotations[\"krane.unkey.com/template\"]";
    let base = objects(scaled_input());
    for (name, change) in changes() {
        let mut input = scaled_input();
        change(&mut input);
        let row = FIELD_TABLE
            .iter()
            .find(|row| Some(row.name) == name.split('.').next())
            .unwrap_or_else(|| panic!("{name} has a row"));
        let changed = objects(input);
        for ((before, after), places) in base.iter().zip(&changed).zip(places) {
            for path in changed_paths(before, after) {
                let found = without_keys(&path);
                let is_documented = places(row).iter().any(|place| {
                    let place = without_keys(place);
                    place.starts_with(&found) || found.starts_with(&place)
                });
                assert!(is_documented || path == hash, "{name} changes {path}");
            }
        }
    }
}

fn is_label_value(value: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 63
        && (value.is_empty() || (value.starts_with(is_end) && value.ends_with(is_end)))
        && value.chars().all(|c| is_end(c) || "-_.".contains(c))
}

prop_compose! {
    /// Whatever an operator may choose.
    fn any_rules()(
        is_full in any::<bool>(),
        platform in "aws|gcp|local",
        request_divisor in 0..9_u64,
        is_cilium_required in any::<bool>(),
        replaces_outdated_pods in any::<bool>(),
        is_ip in any::<bool>(),
        is_split in any::<bool>(),
    ) -> Rules {
        let region = Region { platform: platform.as_str().into(), name: "here".into() };
        let report_address = if is_ip { ReportAddress::Ip } else { ReportAddress::Dns };
        let probe_paths = if is_split { ProbePaths::Split } else { ProbePaths::Legacy };
        let Rules { pull_secret, secrets_audience, storage_class_name, .. } =
            if is_full { all_rules() } else { Rules::default() };
        // All fields, so that a new one is not forgotten.
        Rules {
            region, namespace_of_krane: "krane".into(), request_divisor, max_replicas: 1000,
            pull_secret, is_cilium_required, secrets_audience, replaces_outdated_pods,
            storage_class_name, report_address, probe_paths,
        }
    }
}

proptest! {
    /// unkeyed/unkey 61cc44f027, 9da927329a, 9ab8c661fa (A14): a change for local development took
    /// the sandbox away. argoproj/argo-cd#17568 (B23): items without their key fields are refused.
    /// helm/helm PR #31361, kubernetes/kubernetes PR #81453 (B24): fields that are the server's.
    #[test]
    fn whatever_is_valid_renders_sandboxed_legal_and_without_duplicates(
        input in valid_input(), rules in any_rules(),
    ) {
        let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
        let body = render(&desired, &rules, None);
        // Again, over what the first apply made.
        let live = applied(&body, "uid-1", 7).unwrap_or_else(|error| panic!("{error}"));
        let again = render(&desired, &rules, Some(&live)).body;
        let body = body.body;
        for body in [&body, &again] {
            prop_assert_eq!(at(body, "spec.template.spec.runtimeClassName"), &json!("gvisor"));
        }
        check_lists(&body);
        for owned in dependants(&desired, &live) {
            check_lists(&owned.body);
        }
        let labels = at(&body, "metadata.labels").as_object().cloned().unwrap_or_default();
        for (key, value) in &labels {
            prop_assert!(is_label_value(value.as_str().unwrap_or("?")), "{} {}", key, value);
        }
        prop_assert_eq!(at(&body, "spec.template.metadata.labels").as_object(), Some(&labels));
        for field in ["status", "uid", "resourceVersion", "managedFields", "creationTimestamp"] {
            prop_assert!(body.get(field).is_none() && body["metadata"].get(field).is_none());
        }
    }

    #[test]
    fn rendering_is_a_function_of_its_input(input in valid_input()) {
        prop_assert_eq!(body(input.clone()), body(input));
    }
}
