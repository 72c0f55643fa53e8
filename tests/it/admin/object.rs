//! The page of one workload: verdict, chain, differing fields and who owns them.

use std::time::Duration;

use http::StatusCode;
use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::desired::Change;
use krane_domain::ids::{Controller, ObjectKey, WorkKey};
use krane_domain::kinds::Rules;
use krane_domain::object::ObjectRef;
use krane_ports::Cluster;
use krane_sim::cluster::Patch;
use serde_json::{Value, json};

use super::world::{CANARY, World, wanted};

const WEB: &str = "/api/v1/workloads/deployments/shop/web";

/// A workload that is in the cluster, too, as krane wrote it.
async fn written(world: &World) -> (ObjectKey, ObjectRef) {
    world.is_up();
    world.in_place(4, "web");
    let (key, change) = wanted("shop", "web");
    let Change::Apply(desired) = change else {
        panic!("it is wanted")
    };
    let admin = world.cluster.admin();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    admin.create(namespace, "kubectl-create").unwrap();
    let rendered = desired.render(&Rules::default(), None);
    let live = world.cluster.client().apply(&rendered, None).await.unwrap();
    world.store.inside(|memory| drop(memory.view.insert(live)));
    (key, rendered.reference)
}

/// Somebody edits it, and the watch shows that.
async fn edited(world: &World, reference: &ObjectRef, manager: &str, patch: Value) {
    let admin = world.cluster.admin();
    admin
        .patch(reference, manager, "", &Patch::Json(patch))
        .unwrap();
    let live = world.cluster.client().get(reference).await.unwrap();
    world
        .store
        .inside(|memory| drop(memory.view.insert(live.unwrap())));
}

fn part<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let mut parts = object["objects"].as_array().unwrap().iter();
    parts
        .find(|part| part["object"].as_str().unwrap().starts_with(kind))
        .unwrap()
}

/// argoproj/argo-cd#23927: nobody says who owns a field that differs.
#[tokio::test(start_paused = true)]
async fn a_field_that_differs_is_shown_with_both_values_and_its_owner() {
    let world = World::new();
    let (_, reference) = written(&world).await;
    let patch = json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]);
    edited(&world, &reference, "kubectl-scale", patch).await;
    let object = world.json(WEB).await;
    let set = part(&object, "ReplicaSet");
    assert_eq!(set["state"], "differs");
    let found = &set["differences"][0];
    assert_eq!(found["path"], "spec.replicas");
    assert_eq!(
        (&found["live"], &found["wanted"]),
        (&json!("7"), &json!("2"))
    );
    assert_eq!(found["owners"], json!(["kubectl-scale"]));
    let verdict = object["verdict"].as_str().unwrap();
    assert!(
        verdict.contains("differs at spec.replicas, owned by kubectl-scale"),
        "{verdict}"
    );
    let page = world.get("/workloads/deployments/shop/web").await;
    assert_eq!(page.status, StatusCode::OK);
    for said in ["kubectl-scale", "spec.replicas", "--show-managed-fields"] {
        assert!(page.text.contains(said), "{said} is missing");
    }
}

#[tokio::test(start_paused = true)]
async fn the_chain_goes_from_what_is_wanted_to_what_the_control_plane_knows() {
    let world = World::new();
    written(&world).await;
    let object = world.json(WEB).await;
    let steps: Vec<_> = object["chain"].as_array().unwrap().iter().collect();
    let names: Vec<_> = steps
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["wanted", "needed", "applied", "pods", "reported"]);
    assert_eq!(steps[0]["text"], "version 4 wanted");
    // Nobody made them here.
    assert_eq!(steps[1]["level"], "busy");
    assert_eq!(steps[4]["text"], "told the control plane: 1 of 1 running");
}

#[tokio::test(start_paused = true)]
async fn a_state_set_aside_says_why_how_often_and_when_it_is_tried_again() {
    let world = World::new();
    world.is_up();
    world.quarantined(7, "bad", "the field image is empty", "send an image");
    let object = world.json("/api/v1/workloads/deployments/shop/bad").await;
    let verdict = object["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Version 7 is set aside: the field image is empty."));
    let applied = &object["chain"].as_array().unwrap()[2];
    assert_eq!(applied["text"], "1 try failed: the field image is empty");
    assert!(applied["next_try"].is_string() && applied["at"].is_string());
    assert_eq!(object["events"][0]["kind"], "troubled");
    let page = world.get("/workloads/deployments/shop/bad").await.text;
    assert!(page.contains("send an image") && page.contains("next try"));
}

/// The end of the hold and the next look at it are two moments.
#[tokio::test(start_paused = true)]
async fn a_hold_says_when_it_ends_and_is_counted_apart() {
    let world = World::new();
    let (key, reference) = written(&world).await;
    world.quarantined(7, "bad", "the field image is empty", "send an image");
    let annotations = json!({"krane.unkey.com/hold": "2027-01-15T09:00:00Z"});
    let patch = json!([{"op": "add", "path": "/metadata/annotations", "value": annotations}]);
    edited(&world, &reference, "kubectl-annotate", patch).await;
    let now = world.board.now();
    world
        .store
        .inside(|memory| memory.backlog.look(&WorkKey::Workload(key.clone()), now));
    let held = Trouble::new(TroubleKind::Held, "a person put it on hold");
    world.finish(&key, Outcome::Trouble(held));
    let object = world.json(WEB).await;
    let set = part(&object, "ReplicaSet");
    assert_eq!(set["hold_ends"], "2027-01-15T09:00:00.000Z");
    assert_eq!(set["until"], set["hold_ends"], "as before");
    let next_try = &object["workload"]["next_try"];
    assert!(
        next_try.as_str().unwrap() < "2027-01-15T08:01:00.000Z",
        "{next_try}"
    );
    assert_eq!(next_try, &object["workload"]["until"], "as before");
    let controller = world.json("/api/v1/controllers/deployments").await;
    let counted = (&controller["quarantined"], &controller["on_hold"]);
    assert_eq!(counted, (&json!(2), &json!(1)));
    let cards = world.get("/parts/controllers").await.text;
    for said in [
        "Set aside or waiting <span class=\"dim\">(1)",
        "On hold <span class=\"dim\">(1)",
    ] {
        assert!(cards.contains(said), "{said}: {cards}");
    }
    let page = world.get("/workloads/deployments/shop/web").await.text;
    assert!(
        page.contains("ends <time datetime=\"2027-01-15T09:00:00.000Z\""),
        "{page}"
    );
}

/// argoproj/argo-cd#14666: a state without a reason is no help at all.
#[tokio::test(start_paused = true)]
async fn no_state_is_without_a_reason() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    world.quarantined(2, "bad", "refused", "fix it");
    let (waits, change) = wanted("shop", "waits");
    world.wants(3, waits.clone(), change);
    let (blocked, change) = wanted("blog", "blocked");
    world.wants(4, blocked.clone(), change);
    let on = [krane_domain::ids::SharedKey::Namespace("blog".into())].into();
    world.finish(&blocked, Outcome::Blocked(on));
    let all = world.json("/api/v1/workloads").await;
    let all = all["workloads"].as_array().unwrap();
    assert_eq!(all.len(), 4);
    for workload in all {
        let (namespace, name) = (&workload["namespace"], &workload["name"]);
        let path = format!(
            "/api/v1/workloads/deployments/{}/{}",
            namespace.as_str().unwrap(),
            name.as_str().unwrap()
        );
        let object = world.json(&path).await;
        let verdict = object["verdict"].as_str().unwrap();
        assert!(
            verdict.contains("Version ") && verdict.ends_with('.'),
            "{verdict}"
        );
        assert!(!verdict.contains(": ."), "{verdict}");
        for step in object["chain"].as_array().unwrap() {
            assert!(!step["text"].as_str().unwrap().ends_with(": "), "{step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_what_differs_no_secret_is_shown() {
    let world = World::new();
    let (_, reference) = written(&world).await;
    let leak = format!("leaked-{CANARY}");
    let variables = "/spec/template/spec/containers/0/env";
    edited(
        &world,
        &reference,
        "kubectl-edit",
        json!([
            {"op": "add", "path": format!("{variables}/-"), "value": {"name": "TOKEN", "value": leak}},
            {"op": "replace", "path": "/spec/template/spec/containers/0/command", "value": ["sh", leak]},
        ]),
    )
    .await;
    for path in [
        WEB,
        "/workloads/deployments/shop/web",
        "/parts/workloads/deployments/shop/web",
    ] {
        let text = world.get(path).await.text;
        assert!(text.contains("kubectl-edit"), "{path}: {text}");
        assert!(!text.contains(CANARY), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_wants_is_said_to_be_unknown_and_names_stay_text() {
    let world = World::new();
    world.is_up();
    let nothing = world.get("/workloads/deployments/shop/%3Cscript%3E").await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    assert!(nothing.text.contains("Nothing is wanted of shop/"));
    assert!(!nothing.text.contains("<script>"), "{}", nothing.text);
    for path in [
        "/api/v1/workloads/deployments/shop/web",
        "/api/v1/workloads/planets/shop/web",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.text.contains("error"), "{path}");
    }
}

/// What a name makes of an address must not be fetched in the place of a part.
#[tokio::test(start_paused = true)]
async fn no_name_leads_the_page_elsewhere() {
    let world = World::new();
    world.is_up();
    for name in ["..%2F..%2Fapi%2Fv1%2Fevents%3F", "%2E%2E", "a%22%3E%3Cb"] {
        let page = world.get(&format!("/workloads/deployments/{name}/x")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND);
        let part = page.text.split("data-part=\"").nth(1).unwrap();
        let part = part.split('"').next().unwrap();
        let segments: Vec<_> = part.split('/').collect();
        assert_eq!((segments.len(), segments[0]), (4, "workloads"), "{part}");
        assert!(!part.contains("..") && !part.contains('<'), "{part}");
    }
    let planets = world.get("/workloads/..%2Fplanets/x/y").await;
    assert_eq!(planets.status, StatusCode::NOT_FOUND);
    assert!(!planets.text.contains("data-part"));
}

#[tokio::test(start_paused = true)]
async fn events_are_found_by_their_object() {
    let world = World::new();
    world.is_up();
    world.quarantined(1, "bad", "refused", "fix it");
    let applied = krane_actors::events::Happening::Applied {
        key: ObjectKey::new("shop", "web"),
        version: 2,
        took: Duration::from_millis(3),
    };
    world.board.record(Some(Controller::Deployments), applied);
    let found = world.json("/api/v1/events?filter=shop/web").await;
    assert_eq!(found["events"].as_array().unwrap().len(), 1);
    assert_eq!(found["events"][0]["kind"], "applied");
    let part = world.get("/parts/events?events=quarantined").await.text;
    assert!(part.contains("shop/bad") && !part.contains("shop/web"));
    let part = world.get("/parts/events?events=nothing").await.text;
    assert!(part.contains("None of the events kept matches"), "{part}");
}
