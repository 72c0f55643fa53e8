//! Answers that take long, and connections over which none can come (F32, D49).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use krane_actors::lease::Leadership;
use krane_actors::status::StatusBoard;
use krane_domain::lease::{Elector, Record, Timing};
use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{CallLimits, CallTimeouts, KubeCluster, Liveness};
use krane_ports::{Cluster, WatchEnd, WatchEvent};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::server::{Answer, PATIENCE};
use super::{Rig, live, not_found, pod, pods, rendered, replica_set};

/// As by default, in a tenth of the time.
const BRISK: Liveness = Liveness {
    probe: Duration::from_secs(1),
    dead_after: Duration::from_millis(1_500),
};

/// Longer than a connection of [`BRISK`] may be dead.
const LONG: Duration = Duration::from_secs(4);

fn timeouts(read: u64) -> CallTimeouts {
    CallTimeouts {
        read: Duration::from_millis(read),
        longest_read: Duration::from_millis(read * 13 / 2),
        ..CallTimeouts::default()
    }
}

async fn rig(
    timeouts: CallTimeouts,
    script: impl Fn(&super::Seen) -> Answer + Send + Sync + 'static,
) -> Rig {
    Rig::with_liveness(CallLimits::default(), timeouts, BRISK, script).await
}

/// An answer after this time.
#[expect(
    clippy::disallowed_methods,
    reason = "a server of a test: time is real here"
)]
fn after(delay: Duration, answer: Answer) -> Answer {
    let (gate, is_open) = watch::channel(false);
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        let _ = gate.send(true);
    });
    Answer::After(is_open, Box::new(answer))
}

/// Two webhooks of 10 s that do not answer: the write is done after 20 s. The server is alive all
/// the while, and its kernel says so.
#[tokio::test]
async fn a_write_that_takes_longer_than_a_dead_connection_may_arrives_once() {
    let rig = rig(timeouts(500), |_| after(LONG, Answer::json(200, &live(7)))).await;
    let live = timeout(PATIENCE, rig.cluster.apply(&rendered(), None)).await;
    assert_eq!(live.unwrap().unwrap().resource_version, 7);
    rig.server.only_request();
}

#[tokio::test]
async fn a_write_that_was_given_up_names_webhooks_as_the_likely_cause() {
    let short = CallTimeouts::fixed(Duration::from_millis(100));
    let rig = Rig::with(CallLimits::default(), short, |_| Answer::Hang).await;
    let write = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    let text = write.to_string();
    assert!(
        text.contains("admission webhook that does not answer"),
        "{text}"
    );
    assert!(text.contains("validatingwebhookconfigurations"), "{text}");
    let read = rig.cluster.get(&replica_set()).await.unwrap_err();
    assert!(!read.to_string().contains("webhook"), "{read}");
}

#[tokio::test]
async fn a_read_that_timed_out_has_twice_the_time_when_it_is_asked_again() {
    let rig = rig(timeouts(200), |_| Answer::Hang).await;
    for limit in ["200ms", "400ms", "800ms", "1.3s", "1.3s"] {
        let refusal = rig.cluster.get(&replica_set()).await.unwrap_err();
        let expected = format!("within {limit}");
        assert!(refusal.message.contains(&expected), "{refusal}");
    }
}

#[tokio::test]
async fn a_page_that_timed_out_is_asked_again_smaller_from_its_continue_token() {
    let rig = rig(timeouts(200), |seen| {
        let page = |name, version, next: &str| {
            let metadata = json!({"resourceVersion": "100", "continue": next});
            Answer::json(
                200,
                &json!({"metadata": metadata, "items": [pod(name, version)]}),
            )
        };
        match (seen.query("continue"), seen.query("limit")) {
            (None, _) => page("a", 1, "second"),
            (Some("second"), Some("31")) => page("b", 2, "third"),
            (Some("third"), _) => page("c", 3, ""),
            _ => Answer::Hang,
        }
    })
    .await;
    let listed = timeout(PATIENCE, rig.cluster.list(&pods())).await;
    assert_eq!(listed.unwrap().unwrap().items.len(), 3);
    let asked: Vec<_> = rig
        .server
        .requests()
        .iter()
        .map(|seen| {
            let query = |key| seen.query(key).unwrap_or_default().to_owned();
            (query("continue"), query("limit"))
        })
        .collect();
    let expected = [
        ("", "500"),
        ("second", "500"),
        ("second", "125"),
        ("second", "31"),
        ("third", "62"),
    ];
    assert_eq!(
        asked,
        expected.map(|(token, limit)| (token.to_owned(), limit.to_owned()))
    );
}

#[tokio::test]
async fn a_list_that_never_answers_ends() {
    let rig = rig(timeouts(100), |_| Answer::Hang).await;
    let refusal = timeout(PATIENCE, rig.cluster.list(&pods()))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
    assert!(refusal.message.contains("within 650ms"), "{refusal}");
}

/// In a request, in a watch, and on a connection that was used before: each is found by itself,
/// long before the limit of the call.
#[tokio::test]
async fn a_connection_that_leads_nowhere_is_found_apart_from_the_limits_of_calls() {
    let minute = CallTimeouts::fixed(Duration::from_secs(60));
    let count = AtomicUsize::new(0);
    let rig = rig(minute, move |seen| match seen.method.as_str() {
        "PATCH" => Answer::BlackHole,
        _ if seen.query("watch").is_some() => Answer::BlackHoleInside,
        _ if count.fetch_add(1, Ordering::SeqCst) == 0 => not_found(),
        _ => Answer::BlackHole,
    })
    .await;
    let began = Instant::now();
    let mut watch = rig.cluster.watch(&pods(), "1").await.unwrap();
    let wait = async {
        let (object, other) = (rendered(), replica_set());
        let write = rig.cluster.apply(&object, None);
        let reads = async {
            rig.cluster.get(&other).await.unwrap();
            rig.cluster.get(&other).await
        };
        tokio::join!(write, reads, watch.next())
    };
    let (write, read, event) = timeout(PATIENCE, wait).await.unwrap();
    for refusal in [write.unwrap_err(), read.unwrap_err()] {
        assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
        assert!(refusal.message.contains("timed out"), "{refusal}");
    }
    let is_failed = matches!(event, Some(WatchEvent::Ended(WatchEnd::Failed(_))));
    assert!(is_failed, "{event:?}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// A right to write that nobody prolongs.
fn led_for(window: Duration) -> Leadership {
    let board = StatusBoard::new();
    let leadership = Leadership::elected("this".into(), board.clone());
    let timing = Timing {
        duration: window * 3,
        renew: window,
        retry: window,
    };
    let record = Record {
        uid: "u".into(),
        version: "1".into(),
        holder: Some("this".into()),
        duration: Some(timing.duration),
        transitions: 1,
        acquired_at: None,
    };
    let (mut elector, now) = (Elector::new("this".into(), timing), board.now());
    elector.read(None, now);
    elector.wrote(record, now, now);
    leadership.publish(&elector, now);
    leadership
}

/// D22: what was let go in a term does not go on after it.
#[tokio::test]
async fn a_write_under_way_is_dropped_when_the_term_ends() {
    let rig = rig(CallTimeouts::default(), |_| Answer::Hang).await;
    let cluster = KubeCluster::new(
        Arc::clone(&rig.connection),
        CallLimits::default(),
        CallTimeouts::default(),
    );
    let cluster = cluster.led_by(Arc::new(led_for(Duration::from_secs(2))));
    let write = timeout(PATIENCE, cluster.apply(&rendered(), None)).await;
    let refusal = write.unwrap().unwrap_err();
    assert!(refusal.message.contains("standby"), "{refusal}");
    rig.server.only_request();
    rig.server.wait_for_no_connection().await;
}
