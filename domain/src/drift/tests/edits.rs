//! What other people edit, as the API server records it.

use serde_json::{Value, json};

use super::{NOW, differences, found, in_place, kept, policy, secret, workload};
use crate::drift::{Decision, DifferenceKind, Foreign, judge};
use crate::kinds::deployment::DeploymentInput;
use crate::testing::{Edit, full_input, list_at, minimal_input};

const FIELDS: &str = "/metadata/managedFields/0/fieldsV1";
const CONTAINER: &str = "/spec/template/spec/containers/0";
const OWN_CONTAINER: &str = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"deployment\"}";

fn at<'a>(object: &'a mut Value, pointer: &str) -> &'a mut Value {
    object
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("nothing at {pointer}"))
}

/// An edit that takes ownership away: krane loses the field, another manager gets it.
fn taken(object: &mut Value, own: &str, field: &str) {
    let parent = at(object, &format!("{FIELDS}{own}")).as_object_mut();
    assert!(
        parent.and_then(|parent| parent.remove(field)).is_some(),
        "{own}/{field} is owned"
    );
}

fn other_manager(object: &mut Value, fields: &Value) {
    let entry = json!({
        "manager": "kubectl-edit",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsV1": fields,
    });
    list_at(object, "/metadata/managedFields").push(entry);
}

/// Every row of the table that one apply undoes.
#[test]
fn edits_of_our_fields_are_found() {
    let edits: [(&str, DifferenceKind, Edit); 12] = [
        (
            "metadata.labels[\"unkey.com/app.id\"]",
            DifferenceKind::RenderedNotOwned,
            |live| {
                live["metadata"]["labels"]["unkey.com/app.id"] = json!("other");
                taken(live, "/f:metadata/f:labels", "f:unkey.com/app.id");
            },
        ),
        ("spec.replicas", DifferenceKind::RenderedNotOwned, |live| {
            live["spec"]["replicas"] = json!(9);
            taken(live, "/f:spec", "f:replicas");
        }),
        (
            "spec.template.spec.containers[name=deployment].image",
            DifferenceKind::RenderedNotOwned,
            |live| {
                at(live, CONTAINER)["image"] = json!("evil");
                taken(live, OWN_CONTAINER, "f:image");
            },
        ),
        (
            "spec.template.spec.containers[name=deployment].env[name=PORT].value",
            DifferenceKind::RenderedNotOwned,
            |live| {
                at(live, &format!("{CONTAINER}/env/0"))["value"] = json!("1");
                let own = format!("{OWN_CONTAINER}/f:env/k:{{\"name\":\"PORT\"}}");
                taken(live, &own, "f:value");
            },
        ),
        (
            "spec.template.spec.containers[name=deployment].env[name=PORT]",
            DifferenceKind::RenderedNotOwned,
            |live| {
                list_at(live, &format!("{CONTAINER}/env")).remove(0);
                taken(
                    live,
                    &format!("{OWN_CONTAINER}/f:env"),
                    "k:{\"name\":\"PORT\"}",
                );
            },
        ),
        (
            "spec.template.spec.containers[name=deployment].livenessProbe.httpGet.path",
            DifferenceKind::RenderedNotOwned,
            |live| {
                at(live, &format!("{CONTAINER}/livenessProbe/httpGet"))["path"] = json!("/x");
                taken(
                    live,
                    &format!("{OWN_CONTAINER}/f:livenessProbe/f:httpGet"),
                    "f:path",
                );
            },
        ),
        (
            "spec.template.spec.runtimeClassName",
            DifferenceKind::RenderedNotOwned,
            |live| {
                at(live, "/spec/template/spec")
                    .as_object_mut()
                    .map(|spec| spec.remove("runtimeClassName"));
                taken(live, "/f:spec/f:template/f:spec", "f:runtimeClassName");
            },
        ),
        (
            "spec.template.spec.tolerations",
            DifferenceKind::RenderedNotOwned,
            |live| {
                let added = json!({ "operator": "Exists" });
                list_at(live, "/spec/template/spec/tolerations").push(added);
                taken(live, "/f:spec/f:template/f:spec", "f:tolerations");
            },
        ),
        // Changed and changed back: invisible in values.
        (
            "spec.minReadySeconds",
            DifferenceKind::RenderedNotOwned,
            |live| {
                taken(live, "/f:spec", "f:minReadySeconds");
            },
        ),
        // An apply under our name with more than we want.
        (
            "spec.template.spec.hostNetwork",
            DifferenceKind::OwnedNotRendered,
            |live| {
                at(live, "/spec/template/spec")["hostNetwork"] = json!(true);
                at(live, &format!("{FIELDS}/f:spec/f:template/f:spec"))["f:hostNetwork"] =
                    json!({});
            },
        ),
        (
            "spec.template.spec.containers[name=deployment].env",
            DifferenceKind::Order,
            |live| {
                list_at(live, &format!("{CONTAINER}/env")).swap(0, 1);
            },
        ),
        (
            "spec.template.spec.containers[name=deployment].image",
            DifferenceKind::Value,
            |live| at(live, CONTAINER)["image"] = json!("rewritten"),
        ),
    ];
    let rendered = workload(full_input());
    for (path, kind, edit) in edits {
        let mut live = in_place(&rendered);
        edit(&mut live);
        assert_eq!(found(&rendered, live), [(path.to_owned(), kind)]);
    }
}

#[test]
fn wiped_or_missing_managed_fields_are_written_anew() {
    let rendered = workload(full_input());
    for managed in [
        json!([{}]),
        json!([]),
        Value::Null,
        json!([{ "manager": "krane", "operation": "Update", "fieldsV1": {} }]),
    ] {
        let mut live = in_place(&rendered);
        live["metadata"]["managedFields"] = managed;
        let found = differences(&rendered, live);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "the whole object: not owned by krane");
    }
}

/// What is allowed beside our fields, and what only the exclusive subtrees would show.
#[test]
fn what_others_add_costs_no_write() {
    let edits: [Edit; 5] = [
        |live| live["metadata"]["labels"]["team"] = json!("a"),
        |live| live["metadata"]["annotations"]["note"] = json!("a"),
        |live| live["status"]["replicas"] = json!(3),
        |live| {
            let added = json!({ "name": "DEBUG", "value": "1" });
            list_at(live, &format!("{CONTAINER}/env")).insert(0, added);
        },
        |live| at(live, "/spec/template/spec")["dnsPolicy"] = json!("Default"),
    ];
    let rendered = workload(full_input());
    for edit in edits {
        let mut live = in_place(&rendered);
        edit(&mut live);
        assert_eq!(found(&rendered, live), []);
    }
}

fn intruders(decision: Decision) -> Vec<Foreign> {
    let Decision::Adopt { foreign, .. } = decision else {
        panic!("{decision:?}");
    };
    foreign
}

/// fluxcd/kustomize-controller#486, #558, PR #527 (B25): what others wrote inside of krane's own
/// part goes, what they wrote beside it stays.
#[test]
fn what_others_own_inside_of_exclusive_parts_is_taken_over() {
    let rendered = workload(full_input());
    let mut live = in_place(&rendered);
    other_manager(
        &mut live,
        &json!({
            "f:metadata": { "f:labels": { "f:team": {} } },
            "f:spec": { "f:template": { "f:spec": {
                "f:hostNetwork": {},
                "f:containers": { "k:{\"name\":\"deployment\"}": { "f:env": {
                    "k:{\"name\":\"DEBUG\"}": { ".": {}, "f:name": {}, "f:value": {} },
                } } },
            } } },
        }),
    );
    let scaled = json!({
        "manager": "kube-controller-manager", "operation": "Update", "subresource": "scale",
        "fieldsV1": { "f:spec": { "f:replicas": {} } },
    });
    list_at(&mut live, "/metadata/managedFields").push(scaled);
    let judgement = judge(&rendered, Some(&kept(&rendered, live)), None, NOW);
    let env = "spec.template.spec.containers[name=deployment].env";
    let expected = Foreign {
        manager: "kubectl-edit".to_owned(),
        paths: vec![
            format!("{env}[name=DEBUG].name"),
            format!("{env}[name=DEBUG].value"),
            "spec.template.spec.hostNetwork".to_owned(),
        ],
    };
    assert_eq!(intruders(judgement.decision), [expected]);
}

/// A forced apply takes what it changes from whoever owns it: one write is enough.
#[test]
fn a_value_changed_by_hand_needs_no_taking_over() {
    let rendered = workload(full_input());
    let mut live = in_place(&rendered);
    at(&mut live, CONTAINER)["image"] = json!("other");
    let container = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"deployment\"}";
    taken(&mut live, container, "f:image");
    other_manager(
        &mut live,
        &json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"deployment\"}": {"f:image": {}},
        }}}}}),
    );
    let judgement = judge(&rendered, Some(&kept(&rendered, live)), None, NOW);
    let decision = judgement.decision;
    assert!(matches!(decision, Decision::Update { .. }), "{decision:?}");
}

#[test]
fn a_policy_rule_added_by_hand_is_found() {
    let rendered = policy();
    let mut live = in_place(&rendered);
    list_at(&mut live, "/spec/ingress").push(json!({ "fromEntities": ["all"] }));
    taken(&mut live, "/f:spec", "f:ingress");
    let expected = ("spec.ingress".to_owned(), DifferenceKind::RenderedNotOwned);
    assert_eq!(found(&rendered, live), [expected]);

    let mut live = in_place(&rendered);
    live["specs"] = json!([{ "endpointSelector": {}, "ingress": [{}] }]);
    other_manager(&mut live, &json!({ "f:specs": {} }));
    let judgement = judge(&rendered, Some(&kept(&rendered, live)), None, NOW);
    assert_eq!(intruders(judgement.decision).len(), 1);
}

#[test]
fn a_key_added_to_the_pull_secret_is_foreign() {
    let rendered = secret();
    let mut live = in_place(&rendered);
    live["data"]["LD_PRELOAD"] = json!("eA==");
    other_manager(&mut live, &json!({ "f:data": { "f:LD_PRELOAD": {} } }));
    let judgement = judge(&rendered, Some(&kept(&rendered, live)), None, NOW);
    assert_eq!(intruders(judgement.decision)[0].paths, ["data.LD_PRELOAD"]);
}

/// fluxcd/kustomize-controller#486, #558, PR #527 (B25): what we no longer want and still own goes.
#[test]
fn a_removed_healthcheck_is_no_longer_wanted() {
    let with = workload(full_input());
    let without = workload(DeploymentInput {
        healthcheck: None,
        ..full_input()
    });
    let container = "spec.template.spec.containers[name=deployment]";
    let paths: Vec<String> = found(&without, in_place(&with))
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        paths,
        [
            "spec.template.metadata.annotations[\"krane.unkey.com/template\"]".to_owned(),
            format!("{container}.livenessProbe"),
            format!("{container}.readinessProbe"),
        ],
    );
}

/// kubernetes/kubernetes#131147 (B22): the old port stays when another manager owns it too; here
/// it is ours alone, and goes.
#[test]
fn a_changed_port_is_one_item_more_and_one_less() {
    let old = workload(minimal_input());
    let new = workload(DeploymentInput {
        port: 9090,
        ..minimal_input()
    });
    let ports = "spec.template.spec.containers[name=deployment].ports";
    let found = found(&new, in_place(&old));
    let expected = [
        (
            format!("{ports}[containerPort=8080,protocol=TCP]"),
            DifferenceKind::OwnedNotRendered,
        ),
        (
            format!("{ports}[containerPort=9090,protocol=TCP]"),
            DifferenceKind::RenderedNotOwned,
        ),
    ];
    assert!(expected.iter().all(|one| found.contains(one)), "{found:?}");
}
