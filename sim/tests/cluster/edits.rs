//! Edits of krane's objects by others, as the real API server was seen to take them; the
//! end-to-end tests compare each of them with a real one.

use krane_domain::drift::{self, Decision};
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_ports::Cluster;
use krane_sim::cluster::{Admin, Options, Patch, SimClient, SimCluster};
use krane_testcontract::edits::{Change, DEPLOYMENT_EXEMPT, Edit, undone};
use krane_testcontract::memory::Somebody;
use krane_testcontract::other::Other;
use krane_testcontract::sequences::{autoscaler, policy, replica_set};
use krane_testcontract::sequences::{
    deployment, disruption_budget, gossip_policy, headless_service, service,
};
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

/// What krane does until there is nothing left to do.
async fn restore(client: &SimClient, rendered: &Rendered) {
    let object = &rendered.reference;
    for _ in 0..6 {
        match decide(client, rendered).await {
            Decision::InPlace => break,
            Decision::Adopt { uid, .. } => {
                client.adopt(object, &uid).await.unwrap();
                client.apply(rendered, Some(&uid)).await.unwrap();
            }
            // The label is back with the next apply.
            Decision::NotOurs | Decision::Update { .. } => {
                client.apply(rendered, None).await.unwrap();
            }
            // Only the service of another sort than ours.
            Decision::Recreate { uid } if object.resource == Resource::Service => {
                client.delete(object, &uid).await.unwrap();
                client.apply(rendered, None).await.unwrap();
            }
            other @ (Decision::Create
            | Decision::Terminating
            | Decision::Held { .. }
            | Decision::Recreate { .. }
            | Decision::Refuse(_)) => panic!("{other:?}"),
        }
    }
}

/// The parts that krane alone decides about, without addresses that are chosen for it.
fn wanted(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    if spec["clusterIP"] != "None"
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("clusterIP");
        fields.remove("clusterIPs");
    }
    json!([spec, object["specs"]])
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
    restore(&client, rendered).await;
    assert_eq!(
        decide(&client, rendered).await,
        Decision::InPlace,
        "{edit:?}"
    );
    let after = admin.get(object).unwrap();
    assert_eq!(wanted(&after), wanted(&intact), "{edit:?}");
}

/// As a real API server does (tests/contract).
#[tokio::test]
async fn every_edit_is_seen_and_undone() {
    for rendered in [
        replica_set("ws", "app"),
        deployment("ws", "app"),
        service("ws", "app"),
        headless_service("ws", "app"),
        disruption_budget("ws", "app"),
        policy("ws", "policy"),
        gossip_policy("ws", "app"),
        autoscaler("ws", "app"),
    ] {
        for edit in undone(&rendered) {
            is_undone(&rendered, &edit).await;
        }
    }
}

/// What rolls the pods stays, also when krane writes something else (D11a).
#[tokio::test]
async fn what_rolls_pods_is_left_where_it_is() {
    let rendered = deployment("ws", "app");
    for edit in &DEPLOYMENT_EXEMPT {
        let (client, admin) = cluster();
        let somebody = Somebody(admin.clone());
        let object = &rendered.reference;
        client.apply(&rendered, None).await.unwrap();
        let change = (edit.change)(&admin.get(object).unwrap());
        somebody.change(object, change).await.unwrap();
        assert_eq!(
            decide(&client, &rendered).await,
            Decision::InPlace,
            "{edit:?}"
        );
        let rolled = admin.get(object).unwrap();
        let more = Change::Merge(json!({"spec": {"paused": true, "replicas": 9}}));
        somebody.change(object, more).await.unwrap();
        restore(&client, &rendered).await;
        assert_eq!(
            admin.get(object).unwrap()["spec"],
            rolled["spec"],
            "{edit:?}"
        );
    }
}

/// Headless or not is for life; one that somebody put in place of ours is made anew.
#[tokio::test]
async fn a_service_of_the_other_sort_is_made_anew() {
    for (ours, sort) in [
        (service("ws", "app"), Some("None")),
        (headless_service("ws", "app"), None),
    ] {
        let (client, admin) = cluster();
        let mut theirs = ours.body.clone();
        match sort {
            Some(sort) => theirs["spec"]["clusterIP"] = json!(sort),
            None => drop(theirs["spec"].as_object_mut().unwrap().remove("clusterIP")),
        }
        admin.create(theirs, "somebody").unwrap();
        let decision = decide(&client, &ours).await;
        assert!(
            matches!(decision, Decision::Recreate { .. }),
            "{decision:?}"
        );
    }
}

fn managers(object: &Value) -> Vec<(&str, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let named = entries
        .iter()
        .map(|entry| (entry["manager"].as_str().unwrap(), &entry["fieldsV1"]));
    named.collect()
}

/// A number of zero is left out of what is written, so it is taken from its owner and belongs to
/// nobody; what belongs to nobody is not followed by the scale endpoint either.
#[tokio::test]
async fn scaling_to_more_takes_the_number_over_and_to_zero_gives_it_to_nobody() {
    let (client, admin) = cluster();
    let rendered = replica_set("ws", "app");
    client.apply(&rendered, None).await.unwrap();
    let three = admin.scale(&rendered.reference, 3, "hpa").unwrap();
    let owned = json!({"f:spec": {"f:replicas": {}}});
    assert!(managers(&three).contains(&("hpa", &owned)));
    for replicas in [0, 4] {
        let scaled = admin.scale(&rendered.reference, replicas, "hpa").unwrap();
        let [("krane", fields)] = managers(&scaled)[..] else {
            panic!("{scaled}")
        };
        assert!(fields["f:spec"].get("f:replicas").is_none());
    }
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
