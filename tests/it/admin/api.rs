//! The JSON API.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use krane_actors::events::Happening;
use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::ids::Controller;
use krane_domain::object::Resource;
use krane_settings::{SecretFiles, SecretSource};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::world::{World, wanted};

/// All keys of a JSON tree, with dots; lists by their first item.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                found.insert(path.clone());
                keys(value, &path, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                keys(item, &format!("{path}[]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_the_api_are_a_promise() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    world.quarantined(2, "bad", "refused", "fix it");
    world.watches_break(&[Resource::Pod], false, "no answer");
    world.logs(tracing::Level::INFO, "a line", "");
    let mut found = BTreeSet::new();
    for path in [
        "health",
        "tree",
        "controllers",
        "workloads",
        "events",
        "history",
        "log",
    ] {
        let answer = world.json(&format!("/api/v1/{path}")).await;
        keys(&answer, path, &mut found);
    }
    let object = world.json("/api/v1/workloads/deployments/shop/bad").await;
    keys(&object, "object", &mut found);
    let found: Vec<String> = found.into_iter().collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_state_set_aside_is_told_with_version_reason_and_remedy() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    world.quarantined(7, "bad", "the field image is empty", "send an image");
    let controller = world.json("/api/v1/controllers/deployments").await;
    let aside = &controller["quarantine"][0];
    assert_eq!(aside["object"], "shop/bad");
    assert_eq!(aside["version"], 7);
    assert_eq!(aside["reason"], "the field image is empty");
    assert_eq!(aside["remedy"], "send an image");
    assert_eq!(aside["attempts"], 1);
    assert_eq!(
        (&controller["cursor"], &controller["newest"]),
        (&json!(1), &json!(7))
    );
    let workloads = world.json("/api/v1/workloads").await;
    let states: Vec<_> = workloads["workloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|workload| workload["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["quarantined", "in place"], "the worst first");
    let missing = world.get("/api/v1/controllers/nobody").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert!(missing.text.contains("deployments"));
}

/// For a program, without a word to be taken apart.
#[tokio::test(start_paused = true)]
async fn a_problem_says_since_when_and_of_which_kind_object_and_code_it_is() {
    let world = World::new();
    world.is_up();
    let (key, change) = wanted("shop", "web");
    world.wants(7, key.clone(), change);
    let mut trouble = Trouble::new(TroubleKind::Misconfigured, "the quota is used up");
    trouble.code = Some(403);
    world.finish(&key, Outcome::Trouble(trouble));
    tokio::time::advance(Duration::from_secs(60)).await;
    world.stream_lost("unauthenticated", "bad token");
    tokio::time::advance(Duration::from_secs(60)).await;
    let health = world.json("/api/v1/health").await;
    let told: Vec<Value> = health["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            json!([
                it["kind"],
                it["since"],
                it["controller"],
                it["name"],
                it["code"]
            ])
        })
        .collect();
    let expected = [
        json!([
            "misconfigured",
            "2027-01-15T08:00:00.000Z",
            "deployments",
            "shop/web",
            "403"
        ]),
        json!([
            "stream_down",
            "2027-01-15T08:01:00.000Z",
            "deployments",
            null,
            "unauthenticated"
        ]),
    ];
    assert_eq!(told, expected);
    let page = world.get("/").await.text;
    assert!(
        page.contains("since <time") && page.contains(">2 min</time>"),
        "{page}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_workload_says_what_it_waits_for() {
    let world = World::new();
    world.is_up();
    let (key, change) = wanted("shop", "web");
    world.wants(1, key.clone(), change);
    let state = |answer: Value| answer["workloads"][0]["state"].as_str().unwrap().to_owned();
    assert_eq!(state(world.json("/api/v1/workloads").await), "queued");
    let namespace = krane_domain::ids::SharedKey::Namespace("shop".into());
    world.finish(&key, Outcome::Blocked([namespace].into()));
    world.pass().await;
    let answer = world.json("/api/v1/workloads").await;
    assert_eq!(answer["workloads"][0]["why"], "needs namespace shop first");
    assert_eq!(state(answer), "waiting");
}

#[tokio::test(start_paused = true)]
async fn the_tree_is_told_in_start_order() {
    let world = World::new();
    world.is_up();
    let answer = world.json("/api/v1/tree").await;
    let names: Vec<_> = answer["actors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|actor| actor["path"].as_str().unwrap())
        .collect();
    assert_eq!(names.first(), Some(&"root"));
    let place = |path: &str| names.iter().position(|name| *name == path).unwrap();
    assert!(place("root/heartbeat") < place("root/deployments/observer/watch"));
    assert!(place("root/deployments/intake/reconciler") < place("root/servers/admin"));
}

/// One message of a stream, as its event's name and its data.
async fn message(body: &mut Body) -> (String, Value) {
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        let frame = tokio::time::timeout(Duration::from_secs(30), body.frame());
        let frame = frame.await.unwrap().unwrap().unwrap();
        text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
    }
    let field = |name: &str| {
        let mut lines = text.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .to_owned()
    };
    let data = serde_json::from_str(&field("data: ")).unwrap();
    (field("event: "), data)
}

async fn follow(world: &World, last: Option<u64>) -> Body {
    let mut request = Request::get("/api/v1/stream").header("host", "localhost");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body()
}

#[tokio::test(start_paused = true)]
async fn a_viewer_is_told_of_changes_and_only_of_those() {
    let world = World::new();
    world.is_up();
    let mut tasks = JoinSet::new();
    let (feed, stop) = (world.feed.clone(), world.stop.clone());
    tasks.spawn(async move { feed.run(stop).await });
    let mut body = follow(&world, None).await;
    let (event, first) = message(&mut body).await;
    assert_eq!(
        (event.as_str(), &first["sentence"]),
        ("changed", &json!("Everything wanted is in place"))
    );

    world.quarantined(2, "bad", "refused", "fix it");
    let (event, changed) = message(&mut body).await;
    assert_eq!(event, "changed");
    assert_eq!(changed["sentence"], "1 state set aside");
    assert_eq!(
        changed["parts"],
        json!(["health", "controllers", "workloads", "events"])
    );
    let (event, happened) = message(&mut body).await;
    assert_eq!(
        (event.as_str(), &happened["kind"]),
        ("happened", &json!("troubled"))
    );

    // Nothing changes: nothing is said for as long as nobody would believe it.
    let quiet = tokio::time::timeout(Duration::from_secs(14), body.frame()).await;
    assert!(quiet.is_err(), "{quiet:?}");

    world.stop.cancel();
    assert!(
        body.frame().await.is_none(),
        "the stream ends with the server"
    );
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_comes_back_is_told_what_it_missed() {
    let world = World::new();
    world.is_up();
    for cursor in 1..=3 {
        let opened = Happening::StreamOpened { cursor };
        world.board.record(Some(Controller::Deployments), opened);
    }
    let mut body = follow(&world, Some(1)).await;
    assert_eq!(message(&mut body).await.0, "changed");
    for number in [2, 3] {
        let (event, happened) = message(&mut body).await;
        assert_eq!(
            (event.as_str(), &happened["number"]),
            ("happened", &json!(number))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn viewers_beyond_the_limit_are_sent_away_and_places_come_free() {
    let world = World::new();
    let mut bodies = Vec::new();
    for _ in 0..64 {
        bodies.push(follow(&world, None).await);
    }
    let answer = world.get("/api/v1/stream").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    bodies.pop();
    bodies.push(follow(&world, None).await);
    assert!(
        world.get("/").await.status.is_success(),
        "the page itself is still shown"
    );
}

/// (F2) Also where nothing else is wrong.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_used_is_a_problem_with_its_key_and_without_its_content() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a-password").unwrap();
    let source = SecretSource::file(file.path()).unwrap();
    let files: SecretFiles = [("registry.password_file", source)].into_iter().collect();
    let world = World::with_files(files.clone());
    world.is_up();
    world.in_place(3, "web");
    assert_eq!(world.json("/api/v1/health").await["problems"], json!([]));
    std::fs::write(file.path(), "").unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!files.refresh(world.board.now()), "not just being written");
    let health = world.json("/api/v1/health").await;
    assert_eq!(health["sentence"], "1 file unusable");
    let problem = &health["problems"][0];
    assert_eq!(problem["kind"], "file_unusable");
    assert_eq!(problem["name"], "registry.password_file");
    assert_eq!(problem["since"], "2027-01-15T08:01:00.000Z");
    let why = format!("{} is empty", file.path().display());
    assert_eq!(problem["why"], why.as_str());
    assert!(!health.to_string().contains("a-password"), "{health}");
}
