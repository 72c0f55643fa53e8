//! A watch: every event told once, the end told once, nothing after it.

use std::sync::Mutex;

use futures::StreamExt;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::Resource;
use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{CallLimits, CallTimeouts};
use krane_ports::{Cluster, Item, WatchEnd, WatchEvent};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use super::server::{Answer, PATIENCE, Seen};
use super::{Rig, live, name, pod, pods, replica_sets, status};

type Events = BoxStream<'static, WatchEvent>;

/// A server whose only watch is fed from here.
async fn fed() -> (Rig, mpsc::Sender<Vec<u8>>) {
    let (sender, receiver) = mpsc::channel(16);
    let receiver = Mutex::new(Some(receiver));
    let rig = Rig::new(move |_: &Seen| Answer::Stream(receiver.lock().unwrap().take().unwrap()));
    (rig.await, sender)
}

fn line(kind: &str, object: &Value) -> Vec<u8> {
    format!("{}\n", json!({"type": kind, "object": object})).into_bytes()
}

async fn next(events: &mut Events) -> Option<WatchEvent> {
    timeout(PATIENCE, events.next()).await.unwrap()
}

/// What is left of the watch, as short texts.
async fn rest(mut events: Events) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(event) = next(&mut events).await {
        seen.push(match event {
            WatchEvent::Applied(item) => format!("applied {}", name(&item)),
            WatchEvent::Deleted(item) => format!("deleted {}", name(&item)),
            WatchEvent::Bookmark(version) => format!("bookmark {version}"),
            WatchEvent::Undecodable(_) => "undecodable".to_owned(),
            WatchEvent::Ended(WatchEnd::Failed(_)) => "failed".to_owned(),
            WatchEvent::Ended(end) => format!("{end:?}").to_lowercase(),
        });
    }
    seen
}

/// All events of a watch that the server feeds with these bytes and then closes.
async fn watched(bytes: Vec<u8>) -> Vec<String> {
    let (rig, feed) = fed().await;
    let events = rig.cluster.watch(&pods(), "1").await.unwrap();
    feed.send(bytes).await.unwrap();
    drop(feed);
    rest(events).await
}

#[tokio::test]
async fn a_watch_asks_for_bookmarks_and_an_end_from_the_given_version() {
    let (rig, _feed) = fed().await;
    let _events = rig.cluster.watch(&pods(), "41").await.unwrap();
    let request = rig.server.only_request();
    assert_eq!(request.path, "/api/v1/pods");
    for (key, value) in [
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "80"),
        ("resourceVersion", "41"),
        ("labelSelector", "app.kubernetes.io/managed-by=krane"),
    ] {
        assert_eq!(request.query(key), Some(value));
    }
    assert_eq!(request.query("limit"), None);
}

#[tokio::test]
async fn events_come_in_order_and_the_end_comes_last_and_once() {
    let mut bytes = line("ADDED", &pod("a", 2));
    bytes.extend(line("MODIFIED", &pod("a", 3)));
    bytes.extend(line(
        "BOOKMARK",
        &json!({"metadata": {"resourceVersion": "9"}}),
    ));
    bytes.extend(line("DELETED", &pod("a", 10)));
    assert_eq!(
        watched(bytes).await,
        [
            "applied a",
            "applied a",
            "bookmark 9",
            "deleted a",
            "closed"
        ]
    );
}

#[tokio::test]
async fn an_event_arrives_while_the_watch_stays_open() {
    let (rig, feed) = fed().await;
    let mut events = rig.cluster.watch(&replica_sets(), "1").await.unwrap();
    let bytes = line("ADDED", &live(7));
    let (start, end) = bytes.split_at(20);
    feed.send(start.to_vec()).await.unwrap();
    feed.send(end.to_vec()).await.unwrap();
    let Some(WatchEvent::Applied(Item::Object(object))) = next(&mut events).await else {
        panic!("no event")
    };
    assert_eq!(object.resource_version, 7);
}

#[tokio::test]
async fn what_cannot_be_understood_costs_no_other_event() {
    let mut bytes = line("ADDED", &json!({"metadata": {"name": 7}}));
    bytes.extend(b"<html>\n");
    bytes.extend(b"{\"type\":\"ADDED\"}\n");
    bytes.extend(line("SURPRISE", &pod("a", 2)));
    bytes.extend(line("BOOKMARK", &json!({})));
    bytes.extend(line("ADDED", &pod("b", 3)));
    let mut expected = vec!["undecodable"; 5];
    expected.extend(["applied b", "closed"]);
    assert_eq!(watched(bytes).await, expected);
}

/// kube-rs/kube#219, projectcalico/typha#227 (B01): the version is too old, said inside the stream.
#[tokio::test]
async fn an_expired_version_ends_the_watch_as_expired() {
    for error in [
        status(410, "Expired", "too old resource version: 1 (1282)"),
        status(410, "Gone", "gone"),
        status(0, "Expired", "too old"),
    ] {
        let mut bytes = line("ERROR", &error);
        bytes.extend(line("ADDED", &pod("after-the-end", 3)));
        assert_eq!(watched(bytes).await, ["expired"]);
    }
}

/// kube-rs/kube#1042: the same said as an HTTP status, as proxies and aggregated APIs do.
#[tokio::test]
async fn an_expired_version_at_the_start_is_the_same() {
    let rig = Rig::answering(|| Answer::json(410, &status(410, "Expired", "too old"))).await;
    let events = rig.cluster.watch(&pods(), "1").await.unwrap();
    assert_eq!(rest(events).await, ["expired"]);
}

#[tokio::test]
async fn a_watch_from_no_version_asks_for_a_list_first() {
    let rig = Rig::answering(|| Answer::Hang).await;
    let events = rig.cluster.watch(&pods(), "").await.unwrap();
    assert_eq!(rest(events).await, ["expired"]);
    assert!(rig.server.requests().is_empty());
}

/// etcd restored from a backup: what the server then says is no 410, but a new list heals it too.
#[tokio::test]
async fn a_version_from_the_future_asks_for_a_new_list_too() {
    let mut error = status(504, "Timeout", "Too large resource version: 9, current: 1");
    error["details"] =
        json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]});
    assert_eq!(watched(line("ERROR", &error)).await, ["expired"]);
    let rig = Rig::answering(move || Answer::json(504, &error)).await;
    let events = rig.cluster.watch(&pods(), "9").await.unwrap();
    assert_eq!(rest(events).await, ["expired"]);
}

/// unkeyed/unkey 6f45edf7f7, PR #4603 (A23): the object of an ERROR is a Status, whatever is
/// watched.
#[tokio::test]
async fn an_error_event_is_never_read_as_an_object() {
    let deployments = WatchSpec {
        resource: Resource::Deployment,
        ..pods()
    };
    for spec in [pods(), replica_sets(), deployments] {
        let (rig, feed) = fed().await;
        let mut events = rig.cluster.watch(&spec, "1").await.unwrap();
        let bookmark = json!({"metadata": {"resourceVersion": "9"}});
        let mut bytes = line("BOOKMARK", &bookmark);
        bytes.extend(line("ADDED", &json!({"kind": "Surprise", "spec": []})));
        let error = status(500, "InternalError", "etcd is away");
        bytes.extend(line("ERROR", &error));
        feed.send(bytes).await.unwrap();
        assert!(matches!(
            next(&mut events).await,
            Some(WatchEvent::Bookmark(_))
        ));
        assert!(matches!(
            next(&mut events).await,
            Some(WatchEvent::Undecodable(_))
        ));
        let Some(WatchEvent::Ended(WatchEnd::Failed(text))) = next(&mut events).await else {
            panic!("no end")
        };
        assert_eq!(text, "ERROR event 500 InternalError: etcd is away");
        assert!(next(&mut events).await.is_none());

        let (rig, feed) = fed().await;
        let events = rig.cluster.watch(&spec, "1").await.unwrap();
        feed.send(line("ERROR", &status(410, "Expired", "too old")))
            .await
            .unwrap();
        assert_eq!(rest(events).await, ["expired"]);
    }
    for odd in [json!(null), json!({}), json!("x"), pod("a", 1)] {
        assert_eq!(watched(line("ERROR", &odd)).await, ["failed"]);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_has_failed() {
    let mut bytes = line("ADDED", &pod("a", 2));
    bytes.extend(b"{\"type\":\"ADD");
    assert_eq!(watched(bytes.clone()).await, ["applied a", "failed"]);

    let rig = Rig::answering(move || Answer::Cut(bytes.clone())).await;
    let events = rig.cluster.watch(&pods(), "1").await.unwrap();
    assert_eq!(rest(events).await, ["applied a", "failed"]);
}

#[tokio::test]
async fn a_start_that_fails_is_an_error_and_a_page_is_no_watch() {
    let rig = Rig::answering(|| Answer::json(403, &status(403, "Forbidden", "no right"))).await;
    let refusal = rig.cluster.watch(&pods(), "1").await.err().unwrap();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Configuration, 403)
    );

    let rig = Rig::answering(|| Answer::text(200, "text/html", "<html>\n</html>\n")).await;
    let refusal = rig.cluster.watch(&pods(), "1").await.err().unwrap();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 200)
    );
}

#[tokio::test]
async fn a_watch_outlives_the_timeout_of_calls_and_its_connection_ends_with_it() {
    let (sender, receiver) = mpsc::channel(1);
    let receiver = Mutex::new(Some(receiver));
    let read = Duration::from_millis(500);
    let timeouts = CallTimeouts {
        read,
        ..CallTimeouts::default()
    };
    let rig = Rig::with(CallLimits::default(), timeouts, move |_| {
        Answer::Stream(receiver.lock().unwrap().take().unwrap())
    })
    .await;
    let mut events = rig.cluster.watch(&pods(), "1").await.unwrap();
    // Idle for longer than any call may be.
    assert!(timeout(read * 2, events.next()).await.is_err());
    sender.send(line("ADDED", &pod("a", 2))).await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        Some(WatchEvent::Applied(_))
    ));
    drop(events);
    rig.server.wait_for_no_connection().await;
}
