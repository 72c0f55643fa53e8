use serde_json::{Value, json};

use super::{NOW, all_kinds, decision, in_place, kept, policy, secret, workload};
use crate::drift::{Decision, FuseMemory, Judgement, decide, judge};
use crate::kinds::deployment::DeploymentInput;
use crate::object::Rendered;
use crate::testing::{full_input, lookup};

const CONTAINER: &str = "/spec/template/spec/containers/0";

fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    let place = object
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("nothing at {pointer}"));
    *place = value;
    object
}

#[test]
fn an_absent_object_is_created() {
    for rendered in all_kinds() {
        assert_eq!(decide(&rendered, None, None, NOW), Decision::Create);
    }
}

#[test]
fn a_terminating_object_is_waited_for() {
    for rendered in all_kinds() {
        let mut live = in_place(&rendered);
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        live["metadata"]["labels"] = json!({});
        assert_eq!(decision(&rendered, live), Decision::Terminating);
    }
}

/// D15: whoever removes our label takes the object out of our hands.
#[test]
fn an_object_without_our_label_is_not_ours() {
    for value in [json!("helm"), json!(""), Value::Null] {
        let rendered = workload(full_input());
        let mut live = in_place(&rendered);
        live["metadata"]["labels"]["app.kubernetes.io/managed-by"] = value;
        live["spec"]["replicas"] = json!(99);
        assert_eq!(decision(&rendered, live), Decision::NotOurs);
    }
}

/// D16: a newer krane alone writes nothing, and its number goes along with the next change.
#[test]
fn the_renderer_number_alone_is_no_reason_to_write() {
    for rendered in all_kinds() {
        let renderer = "krane.unkey.com/renderer";
        let older = set(
            in_place(&rendered),
            "/metadata/annotations/krane.unkey.com~1renderer",
            json!("0"),
        );
        assert_eq!(decision(&rendered, older.clone()), Decision::InPlace);

        let mut without = in_place(&rendered);
        without["metadata"]["annotations"] = json!({});
        let own = &mut without["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"];
        own.as_object_mut()
            .map(|metadata| metadata.remove("f:annotations"));
        assert_eq!(decision(&rendered, without), Decision::InPlace);

        let mut both = older;
        both["metadata"]["labels"]["app.kubernetes.io/component"] = json!("other");
        let Decision::Update { differences, .. } = decision(&rendered, both) else {
            panic!("a label differs");
        };
        let paths: Vec<&str> = differences
            .iter()
            .map(|found| found.path.as_str())
            .collect();
        assert_eq!(
            paths,
            [
                &format!("metadata.annotations[\"{renderer}\"]"),
                "metadata.labels[\"app.kubernetes.io/component\"]",
            ],
        );
    }
}

fn held(rendered: &Rendered, annotation: &str, has_drift: bool) -> Judgement {
    let mut live = in_place(rendered);
    live["metadata"]["annotations"]["krane.unkey.com/hold"] = json!(annotation);
    if has_drift {
        live["metadata"]["labels"]["app.kubernetes.io/component"] = json!("other");
    }
    judge(rendered, Some(&kept(rendered, live)), None, NOW)
}

/// D22c. `NOW` is 2027-01-15T08:00:00Z.
#[test]
fn a_hold_is_obeyed_until_its_end_and_for_a_day_at_most() {
    let rendered = workload(full_input());
    for (annotation, has_drift) in [
        ("2027-01-15T08:00:01Z", true),
        ("2027-01-16T08:00:00Z", true),
        ("2027-01-15T09:30:00+01:00", false),
    ] {
        let judgement = held(&rendered, annotation, has_drift);
        let Decision::Held { until, differences } = judgement.decision else {
            panic!("{annotation} holds");
        };
        assert!(until > NOW && until <= NOW + 86_400, "{annotation}");
        assert_eq!(!differences.is_empty(), has_drift, "{annotation}");
        assert_eq!(judgement.ignored_hold, None);
    }
    for annotation in ["2027-01-15T08:00:00Z", "2020-01-01T00:00:00Z"] {
        let judgement = held(&rendered, annotation, true);
        assert!(
            matches!(judgement.decision, Decision::Update { .. }),
            "{annotation} is over"
        );
        assert_eq!(judgement.ignored_hold, None);
    }
}

#[test]
fn a_hold_that_is_not_obeyed_is_told() {
    let rendered = workload(full_input());
    for annotation in [
        "2027-01-16T08:00:01Z",
        "tomorrow",
        "",
        "2027-02-30T00:00:00Z",
    ] {
        let judgement = held(&rendered, annotation, true);
        assert!(
            matches!(judgement.decision, Decision::Update { .. }),
            "{annotation}"
        );
        assert!(judgement.ignored_hold.is_some(), "{annotation}");
    }
    let judgement = held(&policy(), "2027-01-15T09:00:00Z", true);
    assert!(
        matches!(judgement.decision, Decision::Update { .. }),
        "policies are never held"
    );
    assert!(judgement.ignored_hold.is_some());
}

/// fluxcd/flux2#2386 (B29): fields that cannot change; D11c: replaced only within one tenant.
#[test]
fn a_changed_selector_recreates_within_one_environment_only() {
    let old = workload(DeploymentInput {
        deployment_id: "d_old".to_owned(),
        ..full_input()
    });
    let new = workload(full_input());
    let recreate = Decision::Recreate {
        uid: "uid-1".into(),
    };
    assert_eq!(decision(&new, in_place(&old)), recreate);

    for change in [
        (|input| input.workspace_id = "other".to_owned()) as fn(&mut DeploymentInput),
        |input| input.project_id = "other".to_owned(),
        |input| input.environment_id = "other".to_owned(),
    ] {
        let mut input = DeploymentInput {
            deployment_id: "d_old".to_owned(),
            ..full_input()
        };
        change(&mut input);
        let Decision::Refuse(invalid) = decision(&new, in_place(&workload(input))) else {
            panic!("another tenant's object is replaced by nobody");
        };
        assert_eq!(invalid.field, "k8s_name");
    }
}

#[test]
fn a_secret_that_cannot_change_is_recreated() {
    let rendered = secret();
    let recreate = Decision::Recreate {
        uid: "uid-1".into(),
    };
    let mut other_type = in_place(&rendered);
    other_type["type"] = json!("Opaque");
    assert_eq!(decision(&rendered, other_type), recreate);

    let mut frozen = in_place(&rendered);
    frozen["immutable"] = json!(true);
    assert_eq!(decision(&rendered, frozen.clone()), recreate);
    frozen["data"][".dockerconfigjson"] = json!("b2xk");
    assert_eq!(decision(&rendered, frozen), recreate);
}

/// Admission rewrites the image at every apply, and no managed field shows it.
#[test]
fn what_admission_undoes_is_not_applied_twice() {
    let rendered = workload(full_input());
    let image = format!("{CONTAINER}/image");
    let answer = set(in_place(&rendered), &image, json!("mirror.example/odd"));
    let answer = kept(&rendered, answer);
    let fuse = FuseMemory::after_apply(&rendered, &answer);
    assert!(fuse.is_some());

    let judgement = judge(&rendered, Some(&answer), fuse.as_ref(), NOW);
    assert_eq!(judgement.decision, Decision::InPlace);
    assert_eq!(judgement.fused.len(), 1);

    let writes = |rendered: &Rendered, live: Value| {
        let decision = decide(rendered, Some(&kept(rendered, live)), fuse.as_ref(), NOW);
        matches!(decision, Decision::Update { .. })
    };
    let other_value = set(in_place(&rendered), &image, json!("mirror.example/other"));
    assert!(writes(&rendered, other_value), "the live value changed");
    let mut second = set(in_place(&rendered), &image, json!("mirror.example/odd"));
    second["spec"]["replicas"] = json!(1);
    assert!(writes(&rendered, second), "something else differs too");
    let changed = workload(DeploymentInput {
        replicas: 8,
        ..full_input()
    });
    let old = set(in_place(&rendered), &image, json!("mirror.example/odd"));
    assert!(writes(&changed, old), "something else is wanted");
}

#[test]
fn an_apply_that_worked_leaves_no_memory() {
    for rendered in all_kinds() {
        let answer = kept(&rendered, in_place(&rendered));
        assert_eq!(FuseMemory::after_apply(&rendered, &answer), None);
    }
}

/// Secrets in differences: values are shown only where krane itself makes them in clear (D38).
#[test]
fn differences_show_no_secret() {
    let rendered = workload(full_input());
    let mut live = in_place(&rendered);
    let variables = live
        .pointer_mut(&format!("{CONTAINER}/env"))
        .and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        variable["value"] = json!("canary");
    }
    let changed = {
        let mut fields = live.clone();
        fields
            .pointer_mut("/metadata/managedFields/0/fieldsV1/f:spec/f:template/f:spec")
            .and_then(Value::as_object_mut)
            .map(|spec| spec.remove("f:containers"));
        fields
    };
    let blob = lookup(
        &rendered.body,
        "spec.template.spec.containers[0].env[name=UNKEY_ENCRYPTED_ENV].value",
    );
    let blob = blob.and_then(Value::as_str).unwrap_or_default();
    for live in [live, changed] {
        let Decision::Update { differences, .. } = decision(&rendered, live) else {
            panic!("values differ");
        };
        for found in differences
            .iter()
            .filter(|found| found.path.contains("ENCRYPTED"))
        {
            assert_eq!((&found.live, &found.wanted), (&None, &None));
        }
        let text = format!("{differences:?}");
        assert!(!text.contains(blob), "{text}");
    }

    let rendered = secret();
    let mut live = in_place(&rendered);
    live["data"][".dockerconfigjson"] = json!("Y2FuYXJ5");
    let Decision::Update { differences, .. } = decision(&rendered, live) else {
        panic!("the data differs");
    };
    assert_eq!(differences.len(), 1);
    assert_eq!(
        (&differences[0].live, &differences[0].wanted),
        (&None, &None)
    );
    assert_eq!(
        differences[0].to_string(),
        "data[\".dockerconfigjson\"]: another value"
    );
}

#[test]
fn a_difference_reads_as_a_sentence() {
    let rendered = workload(full_input());
    let live = set(in_place(&rendered), "/spec/replicas", json!(9));
    let Decision::Update { differences, .. } = decision(&rendered, live) else {
        panic!("replicas differ");
    };
    assert_eq!(differences[0].to_string(), "spec.replicas: 9 instead of 7");
}
