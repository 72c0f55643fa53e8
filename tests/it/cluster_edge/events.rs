//! Events as they go to the API server.

use std::sync::Arc;

use krane_kubernetes::KubeEvents;
use krane_ports::EventSink as _;
use krane_ports::{Notice, Reason};
use serde_json::{Value, json};

use super::server::{Answer, Seen};
use super::{Rig, replica_set};

fn notice() -> Notice {
    Notice {
        subject: "deployments ws-1/app-1".into(),
        regarding: replica_set(),
        uid: Some("u-1".into()),
        reason: Reason::Quarantined,
        note: "refused; send another state".to_owned(),
    }
}

fn answer(seen: &Seen) -> Answer {
    match &*seen.method {
        "POST" => Answer::json(201, &json!({})),
        "PATCH" if seen.path.ends_with("/there") => Answer::json(200, &json!({})),
        "PATCH" => Answer::json(404, &json!({"kind": "Status", "code": 404})),
        _ => Answer::json(405, &json!({})),
    }
}

#[tokio::test]
async fn an_event_is_created_with_everything_that_kubectl_shows() {
    let rig = Rig::new(answer).await;
    let events = KubeEvents::new(Arc::clone(&rig.connection), "ins_1");
    let name = events.create(&notice()).await.unwrap();
    let seen = rig.server.requests();
    let [request] = &seen[..] else {
        panic!("one request: {seen:?}");
    };
    assert_eq!(
        request.path,
        "/apis/events.k8s.io/v1/namespaces/ws-1/events"
    );
    let mut body = request.json();
    assert!(name.starts_with("app-1."), "{name}");
    assert!(body["eventTime"].as_str().unwrap().ends_with('Z'), "{body}");
    body["eventTime"] = Value::Null;
    let expected = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": &*name, "namespace": "ws-1"},
        "eventTime": null,
        "reportingController": "krane",
        "reportingInstance": "ins_1",
        "action": "Apply",
        "reason": "Quarantined",
        "type": "Warning",
        "note": "refused; send another state",
        "regarding": {
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "namespace": "ws-1", "name": "app-1", "uid": "u-1",
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn what_happens_again_is_a_patch_of_the_series_and_an_event_that_is_gone_is_no_error() {
    let rig = Rig::new(answer).await;
    let events = KubeEvents::new(Arc::clone(&rig.connection), "ins_1");
    assert!(events.recur(&notice(), "there", 7).await.unwrap());
    assert!(!events.recur(&notice(), "gone", 8).await.unwrap());
    let seen = rig.server.requests();
    assert_eq!(
        seen[0].headers["content-type"],
        "application/merge-patch+json"
    );
    let series = &seen[0].json()["series"];
    assert_eq!(series["count"], 7);
    assert!(series["lastObservedTime"].as_str().unwrap().ends_with('Z'));
    let methods: Vec<_> = seen.iter().map(|it| it.method.as_str()).collect();
    assert_eq!(
        methods,
        ["PATCH", "PATCH"],
        "the rights are create and patch"
    );
}

#[tokio::test]
async fn an_event_that_is_refused_is_an_error_and_nothing_else() {
    let refused = || {
        Answer::json(
            403,
            &json!({"kind": "Status", "code": 403, "reason": "Forbidden"}),
        )
    };
    let rig = Rig::answering(refused).await;
    let events = KubeEvents::new(Arc::clone(&rig.connection), "ins_1");
    assert_eq!(events.create(&notice()).await.unwrap_err().code, 403);
    assert_eq!(
        events.recur(&notice(), "there", 2).await.unwrap_err().code,
        403
    );
}
