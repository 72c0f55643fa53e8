//! Edits of krane's objects by others, as the real API server was seen to take them; the
//! end-to-end tests compare each of them with a real one.

use krane_actors::ports::Cluster;
use krane_domain::drift::{self, Decision};
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_sim::cluster::{Admin, Options, Patch, SimClient, SimCluster};
use krane_testcontract::edits::{
    AUTOSCALER_EDITS, AUTOSCALER_INTRUSIONS, Edit, POLICY_EDITS, POLICY_INTRUSIONS,
    REPLICA_SET_EDITS, REPLICA_SET_INTRUSIONS,
};
use krane_testcontract::memory::Somebody;
use krane_testcontract::other::Other;
use krane_testcontract::sequences::{autoscaler, policy, replica_set};
use serde_json::{Value, json};

fn cluster() -> (SimClient, Admin) {
    let cluster = SimCluster::new(Options {
        has_controllers: false,
        ..Options::default()
    });
    cluster.admin().create_namespace("ws").unwrap();
    (cluster.client(), cluster.admin())
}

async fn decide(client: &SimClient, rendered: &Rendered) -> Decision {
    let live = client.get(&rendered.reference).await.unwrap();
    drift::decide(rendered, live.as_ref(), None, 0)
}

/// After the edit krane must find something to do, and come to an end with the object as before.
async fn is_undone(rendered: &Rendered, edit: &Edit) {
    let (client, admin) = cluster();
    client.apply(rendered, None).await.unwrap();
    let object = &rendered.reference;
    let intact = admin.get(object).unwrap();
    let change = (edit.change)(&intact);
    Somebody(admin.clone())
        .change(object, change)
        .await
        .unwrap();
    assert_ne!(
        decide(&client, rendered).await,
        Decision::InPlace,
        "{edit:?}"
    );
    for _ in 0..6 {
        match decide(&client, rendered).await {
            Decision::InPlace => break,
            Decision::Adopt { uid, .. } => {
                client.adopt(object, &uid).await.unwrap();
                client.apply(rendered, Some(&uid)).await.unwrap();
            }
            // The label is back with the next apply.
            Decision::NotOurs | Decision::Update { .. } => {
                client.apply(rendered, None).await.unwrap();
            }
            other @ (Decision::Create
            | Decision::Terminating
            | Decision::Held { .. }
            | Decision::Recreate { .. }
            | Decision::Refuse(_)) => panic!("{edit:?}: {other:?}"),
        }
    }
    assert_eq!(
        decide(&client, rendered).await,
        Decision::InPlace,
        "{edit:?}"
    );
    let after = admin.get(object).unwrap();
    for part in ["spec", "specs"] {
        assert_eq!(after.get(part), intact.get(part), "{edit:?}");
    }
}

/// As a real API server does (tests/contract).
#[tokio::test]
async fn every_edit_is_seen_and_undone() {
    for edit in REPLICA_SET_EDITS.iter().chain(&REPLICA_SET_INTRUSIONS) {
        is_undone(&replica_set("ws", "app"), edit).await;
    }
    for edit in POLICY_EDITS.iter().chain(&POLICY_INTRUSIONS) {
        is_undone(&policy("ws", "policy"), edit).await;
    }
    for edit in AUTOSCALER_EDITS.iter().chain(&AUTOSCALER_INTRUSIONS) {
        is_undone(&autoscaler("ws", "app"), edit).await;
    }
}

fn managers(object: &Value) -> Vec<(&str, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let named = entries
        .iter()
        .map(|entry| (entry["manager"].as_str().unwrap(), &entry["fieldsV1"]));
    named.collect()
}

/// The number is left out of what is written, so it is taken from its owner and belongs to nobody.
#[tokio::test]
async fn scaling_to_zero_owns_nothing_and_to_more_does() {
    let (client, admin) = cluster();
    let rendered = replica_set("ws", "app");
    client.apply(&rendered, None).await.unwrap();
    let none = admin.scale(&rendered.reference, 0, "hpa").unwrap();
    let [("krane", fields)] = managers(&none)[..] else {
        panic!("{none}")
    };
    assert!(fields["f:spec"].get("f:replicas").is_none());
    let three = admin.scale(&rendered.reference, 3, "hpa").unwrap();
    let owned = json!({"f:spec": {"f:replicas": {}}});
    assert!(managers(&three).contains(&("hpa", &owned)));
}

#[tokio::test]
async fn a_json_patch_may_replace_what_is_not_there() {
    let (client, admin) = cluster();
    let rendered = replica_set("ws", "app");
    client.apply(&rendered, None).await.unwrap();
    let patch = |op: &str, path: &str| Patch::Json(json!([{"op": op, "path": path, "value": 5}]));
    let object = &rendered.reference;
    let field = "/spec/template/spec/activeDeadlineSeconds";
    let done = admin.patch(object, "somebody", "", &patch("replace", field));
    assert_eq!(done.unwrap().pointer(field), Some(&json!(5)));
    for (op, path) in [("remove", "/spec/none"), ("replace", "/none/none")] {
        let refused = admin.patch(object, "somebody", "", &patch(op, path));
        assert_eq!(refused.unwrap_err().code, 422, "{op} {path}");
    }
}

/// An empty object has its parts already, and whoever fills them does not own them.
#[tokio::test]
async fn a_creator_owns_fields_and_not_the_parts_they_are_in() {
    let (_, admin) = cluster();
    let rendered = replica_set("ws", "app");
    let created = admin.create(rendered.body, "somebody").unwrap();
    let [("somebody", fields)] = managers(&created)[..] else {
        panic!("{created}")
    };
    for part in [
        "/f:spec",
        "/f:spec/f:template",
        "/f:spec/f:template/f:spec/f:containers",
    ] {
        assert!(fields.pointer(part).unwrap().get(".").is_none(), "{part}");
    }
    let container = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"deployment\"}";
    assert!(fields.pointer(container).unwrap().get(".").is_some());
}

#[tokio::test]
async fn refusals_have_the_real_servers_words() {
    let (client, admin) = cluster();
    let rendered = replica_set("ws", "app");
    client.apply(&rendered, None).await.unwrap();
    let container = "/spec/template/spec/containers/0";
    for (field, value, code, words) in [
        (
            "env",
            json!([{"value": "x"}]),
            422,
            "env[0].name: Required value",
        ),
        (
            "readinessProbe",
            json!({"exec": {"command": ["true"]}, "httpGet": {"port": 1}}),
            422,
            "may not specify more than 1 handler type",
        ),
        (
            "imagePullPolcy",
            json!("Always"),
            500,
            ".imagePullPolcy: field not declared in schema",
        ),
        ("command", json!({}), 500, "expected list, got"),
        (
            "resources",
            json!({"limits": {"cpu": "many"}}),
            500,
            "failed to convert new object",
        ),
    ] {
        let mut rendered = rendered.clone();
        rendered.body.pointer_mut(container).unwrap()[field] = value;
        let refusal = client.apply(&rendered, None).await.unwrap_err();
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(refusal.message.contains(words), "{refusal}");
    }
    let containers = json!([{"name": "a", "image": "a"}, {"name": "a", "image": "b"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let object = ObjectRef::new(Resource::ReplicaSet, "ws", "app");
    let twice = admin.patch(&object, "somebody", "", &Patch::Merge(patch));
    let status = twice.unwrap_err();
    assert!(
        status.message.contains("Duplicate value: \"a\""),
        "{}",
        status.message
    );
}
