//! What a person may have krane do, and who may ask.

use std::sync::atomic::Ordering;

use axum::body::Body;
use http::{Request, StatusCode};
use krane_domain::desired::Change;
use krane_domain::kinds::Rules;
use krane_domain::labels::HOLD_ANNOTATION;
use krane_ports::Cluster;
use serde_json::{Value, json};

use super::world::{Answer, World, wanted};

const TOKEN: &str = "operator";

async fn ask(world: &World, headers: &[(&str, &str)], action: &Value) -> Answer {
    let mut request = Request::post("/api/v1/actions")
        .header("host", "localhost:9091")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world
        .send(request.body(Body::from(action.to_string())).unwrap())
        .await
}

async fn health(world: &World) -> Value {
    let request = Request::get("/api/v1/health")
        .header("host", "localhost:9091")
        .header("authorization", format!("Bearer {TOKEN}"));
    let answer = world.ask(request).await;
    serde_json::from_str(&answer.text).unwrap()
}

async fn act(world: &World, action: Value) -> (StatusCode, Value) {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("x-krane-confirm", "action"),
    ];
    let answer = ask(world, &headers, &action).await;
    let told = serde_json::from_str(&answer.text).unwrap_or(Value::Null);
    (answer.status, told)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_without_leave_token_and_word() {
    let off = json!({"action": "writes", "on": false});
    let world = World::new();
    let answer = ask(&world, &[("x-krane-confirm", "action")], &off).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "admin.actions is off");
    assert!(answer.text.contains("admin.actions"), "{}", answer.text);
    assert!(world.writes.load(Ordering::Relaxed));

    let world = World::with_actions(TOKEN);
    for headers in [
        &[("x-krane-confirm", "action")][..],
        &[
            ("authorization", "Bearer wrong"),
            ("x-krane-confirm", "action"),
        ],
        &[("authorization", "Bearer operator")],
        &[
            ("authorization", "Bearer operator"),
            ("x-krane-confirm", "allow-deletes"),
        ],
    ] {
        let answer = ask(&world, headers, &off).await;
        let is_refused = matches!(answer.status.as_u16(), 401 | 403);
        assert!(is_refused, "{headers:?}: {}", answer.status);
    }
    assert!(world.writes.load(Ordering::Relaxed));
    let (status, _) = act(&world, json!({"action": "explode"})).await;
    assert!(status.is_client_error());
    let (status, _) = act(&world, json!({"action": "writes", "on": false, "more": 1})).await;
    assert!(
        status.is_client_error(),
        "a word that is not understood is no word"
    );
    assert!(world.writes.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn writes_are_switched_and_told() {
    let world = World::with_actions(TOKEN);
    world.is_up();
    assert_eq!(health(&world).await["problems"], json!([]));
    let (status, told) = act(&world, json!({"action": "writes", "on": false})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(told["done"].as_str().unwrap().starts_with("writes are off"));
    assert!(!world.writes.load(Ordering::Relaxed));
    // The clock stands still: whoever acted is shown no view from before.
    let problem = health(&world).await["problems"][0].clone();
    assert_eq!(problem["kind"], "writes_off");
    assert!(problem["since"].is_string(), "{problem}");
    assert!(!problem.to_string().contains("safety.writes"), "{problem}");
    let (_, told) = act(&world, json!({"action": "writes", "on": false})).await;
    assert!(
        told["done"]
            .as_str()
            .unwrap()
            .starts_with("nothing changed")
    );
    act(&world, json!({"action": "writes", "on": true})).await;
    assert!(world.writes.load(Ordering::Relaxed));
    let events = world.board.events().newest_first();
    let asked = events.iter().filter(|event| event.what.name() == "asked");
    assert_eq!(asked.count(), 2, "each change is told once");
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_tried_at_once() {
    let world = World::with_actions(TOKEN);
    world.is_up();
    world.quarantined(1, "bad", "refused", "fix it");
    world.quarantined(2, "worse", "refused", "fix it");
    let now = world.board.now();
    let ready = || world.store.inside(|memory| memory.backlog.ready());
    let before = ready();
    let one = json!({"action": "retry", "controller": "deployments", "workload": "shop/bad"});
    let (_, told) = act(&world, one).await;
    assert_eq!(told["done"], "1 object is tried now");
    assert_eq!(ready(), before + 1);
    let (_, told) = act(&world, json!({"action": "retry"})).await;
    assert_eq!(told["done"], "1 object is tried now", "the other one");
    let (_, told) = act(&world, json!({"action": "retry"})).await;
    assert_eq!(told["done"], "nothing waits for a next try");
    assert_eq!(world.board.now(), now, "nobody waited");
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_written_on_the_object_and_ended() {
    let world = World::with_actions(TOKEN);
    world.is_up();
    world.in_place(1, "web");
    let (_, change) = wanted("shop", "web");
    let Change::Apply(desired) = change else {
        panic!("it is wanted")
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let admin = world.cluster.admin();
    admin.create(namespace, "kubectl-create").unwrap();
    let rendered = desired.render(&Rules::default(), None);
    let live = world.cluster.client().apply(&rendered, None).await.unwrap();
    let annotation = || {
        let live = admin.get(&rendered.reference).unwrap();
        live["metadata"]["annotations"][HOLD_ANNOTATION].clone()
    };
    let hold = |until: Value| json!({"action": "hold", "controller": "deployments", "workload": "shop/web", "until": until});
    let until = "2027-01-15T09:00:00Z";
    let (status, _) = act(&world, hold(json!(until))).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "krane sees no such object");
    world.store.inside(|memory| drop(memory.view.insert(live)));
    let (status, told) = act(&world, hold(json!(until))).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    assert_eq!(annotation(), until);
    let (_, told) = act(&world, hold(Value::Null)).await;
    assert_eq!(told["done"], "krane takes care of shop/web again");
    assert_eq!(annotation(), Value::Null);
    let (_, told) = act(&world, hold(Value::Null)).await;
    assert_eq!(
        told["done"],
        "shop/web was not on hold, krane takes care of it"
    );
    let policy =
        json!({"action": "hold", "controller": "cilium", "workload": "shop/web", "until": until});
    let (status, _) = act(&world, policy).await;
    assert_eq!(
        status,
        StatusCode::BAD_REQUEST,
        "D22c: policies are never on hold"
    );
}

#[tokio::test(start_paused = true)]
async fn a_level_that_cannot_be_changed_is_said_so() {
    let world = World::with_actions(TOKEN);
    let (status, told) = act(&world, json!({"action": "log_level", "level": "debug"})).await;
    // These tests write no lines by krane's telemetry; its own tests change the level.
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(told["error"].as_str().unwrap().contains("stays as it is"));
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_is_down_is_not_said_to_have_heard() {
    let world = World::with_actions(TOKEN);
    let (status, told) = act(&world, json!({"action": "resync"})).await;
    assert_eq!(status, StatusCode::OK);
    let done = told["done"].as_str().unwrap();
    assert_eq!(done, "deployments: when its actor is up again");
    let (status, _) = act(&world, json!({"action": "resync", "controller": "planets"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
