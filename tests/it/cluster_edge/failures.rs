//! Answers that are late, cut, wrong or not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{CallLimits, CallTimeouts};
use krane_ports::Cluster;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::server::{Answer, PATIENCE};
use super::{
    Rig, live, no_such_api, pods, rendered, replica_set, replica_sets, short_timeouts, status,
};

#[tokio::test]
async fn a_server_that_never_answers_costs_a_timeout_and_is_transient() {
    let rig = Rig::with(CallLimits::default(), short_timeouts(), |_| Answer::Hang).await;
    let read = rig.cluster.get(&replica_set()).await.unwrap_err();
    let write = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    let list = rig.cluster.list(&pods()).await.unwrap_err();
    let watch = rig.cluster.watch(&pods(), "1").await.err().unwrap();
    for refusal in [read, write, list, watch] {
        assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
        assert!(refusal.message.contains("within 100ms"), "{refusal}");
    }
    let heard = rig.recorder.0.lock().unwrap().clone();
    assert!(heard.iter().all(|(_, _, code)| code == "<error>") && heard.len() == 4);
}

#[tokio::test]
async fn an_answer_that_stops_half_way_is_timed_out_too() {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let receiver = std::sync::Mutex::new(Some(receiver));
    let rig = Rig::with(CallLimits::default(), short_timeouts(), move |_| {
        Answer::Stream(receiver.lock().unwrap().take().unwrap())
    })
    .await;
    sender.send(b"{\"metadata\":".to_vec()).await.unwrap();
    let refusal = rig.cluster.get(&replica_set()).await.unwrap_err();
    assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
    rig.server.wait_for_no_connection().await;
}

#[tokio::test]
async fn nobody_there_is_transient_and_says_so() {
    let rig = Rig::answering(|| Answer::Hang).await;
    let Rig {
        server,
        cluster,
        connection: _connection,
        recorder: _recorder,
        _folder,
    } = rig;
    drop(server);
    let refusal = cluster.get(&replica_set()).await.unwrap_err();
    assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
    assert!(refusal.message.contains("onnection refused"), "{refusal}");
    assert!(!refusal.message.contains("ServiceError"), "{refusal}");
}

/// Anvil, lost reply (C17): the write happened, its answer did not arrive.
#[tokio::test]
async fn a_write_whose_answer_was_lost_succeeds_when_repeated() {
    let count = AtomicUsize::new(0);
    let rig = Rig::new(move |seen| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        match (number, seen.method.as_str()) {
            (0, _) => Answer::Close,
            (1, _) => Answer::Cut(b"{\"kind\":".to_vec()),
            (_, "PATCH") => Answer::json(200, &live(7)),
            (3, _) => Answer::Close,
            (..) => super::not_found(),
        }
    })
    .await;
    for _ in 0..2 {
        let lost = rig.cluster.apply(&rendered(), None).await.unwrap_err();
        assert_eq!((lost.class, lost.code), (RefusalClass::Transient, 0));
    }
    rig.cluster.apply(&rendered(), None).await.unwrap();
    let lost = rig.cluster.delete(&replica_set(), "u-1").await.unwrap_err();
    assert_eq!(lost.class, RefusalClass::Transient);
    rig.cluster.delete(&replica_set(), "u-1").await.unwrap();
    assert_eq!(
        rig.server.requests().len(),
        5,
        "the adapter itself repeats nothing"
    );
}

#[tokio::test]
async fn a_proxys_error_page_is_transient_and_only_its_first_line_is_kept() {
    let page = "\r\n<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>";
    let rig = Rig::answering(|| Answer::text(502, "text/html", page)).await;
    let refusal = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 502)
    );
    assert_eq!(refusal.message, "<html>");
}

#[tokio::test]
async fn json_that_is_cut_or_odd_is_transient_and_never_quoted() {
    for body in [
        "{\"metadata\":{\"name\":\"hunter2",
        "\"hunter2\"",
        "<html>hunter2</html>",
        "",
    ] {
        let rig = Rig::answering(move || Answer::text(200, "application/json", body)).await;
        let read = rig.cluster.get(&replica_set()).await.unwrap_err();
        let metadata = rig.cluster.metadata(&replica_set()).await.unwrap_err();
        let write = rig.cluster.apply(&rendered(), None).await.unwrap_err();
        let list = rig.cluster.list(&replica_sets()).await.unwrap_err();
        for refusal in [read, metadata, write, list] {
            assert_eq!(
                (refusal.class, refusal.code),
                (RefusalClass::Transient, 200)
            );
            assert!(!refusal.to_string().contains("hunter2"), "{refusal}");
        }
    }
}

/// unkeyed/unkey fb7501c734, PR #5833 (A20): 429 with Retry-After.
#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_passed_on() {
    let busy = || Answer::json(429, &status(429, "TooManyRequests", "busy"));
    let rig = Rig::answering(move || busy().with_header("retry-after", "7")).await;
    let refusal = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 429)
    );
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(7)));

    let rig = Rig::answering(|| {
        let mut body = status(429, "TooManyRequests", "busy");
        body["details"] = json!({"retryAfterSeconds": 3});
        Answer::json(429, &body)
    })
    .await;
    let refusal = rig.cluster.list(&pods()).await.unwrap_err();
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(3)));

    let rig =
        Rig::answering(move || busy().with_header("retry-after", "18446744073709551615")).await;
    let refusal = rig.cluster.watch(&pods(), "1").await.err().unwrap();
    assert_eq!(refusal.retry_after, Some(Duration::from_mins(10)));
    let soon = Rig::answering(move || busy().with_header("retry-after", "soon")).await;
    assert_eq!(
        soon.cluster
            .get(&replica_set())
            .await
            .unwrap_err()
            .retry_after,
        None
    );
}

#[tokio::test]
async fn a_kind_the_server_does_not_know_is_missing_for_every_verb() {
    let rig = Rig::answering(no_such_api).await;
    let apply = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    let get = rig.cluster.get(&replica_set()).await.unwrap_err();
    let list = rig.cluster.list(&replica_sets()).await.unwrap_err();
    let watch = rig.cluster.watch(&replica_sets(), "1").await.err().unwrap();
    for refusal in [apply, get, list, watch] {
        assert_eq!(
            (refusal.class, refusal.code),
            (RefusalClass::KindMissing, 404)
        );
    }
}

/// unkeyed/unkey 0587420153, PR #5624 (A20): an unbounded sync overran the API server.
#[tokio::test]
async fn no_more_requests_run_at_once_than_allowed_and_watches_are_apart() {
    let (gate, is_open) = watch::channel(false);
    let running = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&running);
    let limits = CallLimits {
        max_in_flight: 4,
        ..CallLimits::default()
    };
    let rig = Rig::with(limits, CallTimeouts::default(), move |seen| {
        if seen.query("watch").is_some() {
            let (_, pieces) = tokio::sync::mpsc::channel(1);
            return Answer::Stream(pieces);
        }
        count.fetch_add(1, Ordering::SeqCst);
        Answer::After(is_open.clone(), Box::new(Answer::json(200, &live(7))))
    })
    .await;
    let mut calls = JoinSet::new();
    for _ in 0..40 {
        let cluster = Arc::clone(&rig.cluster);
        calls.spawn(async move { cluster.get(&replica_set()).await.is_ok() });
    }
    rig.server.wait_for_requests(4).await;
    // The fifth would have arrived before the watch, which was sent later and is answered.
    drop(
        timeout(PATIENCE, rig.cluster.watch(&pods(), "1"))
            .await
            .unwrap()
            .unwrap(),
    );
    assert_eq!(running.load(Ordering::SeqCst), 4);
    gate.send(true).unwrap();
    assert!(calls.join_all().await.into_iter().all(|is_ok| is_ok));
    assert_eq!(running.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn a_call_that_is_dropped_frees_its_place_and_its_connection() {
    let (_gate, is_open) = watch::channel(false);
    let limits = CallLimits {
        max_in_flight: 1,
        ..CallLimits::default()
    };
    let count = AtomicUsize::new(0);
    let rig = Rig::with(limits, CallTimeouts::default(), move |_| {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::After(is_open.clone(), Box::new(Answer::Hang)),
            _ => Answer::json(200, &live(7)),
        }
    })
    .await;
    let cluster = Arc::clone(&rig.cluster);
    let mut calls = JoinSet::new();
    calls.spawn(async move { cluster.get(&replica_set()).await.is_ok() });
    rig.server.wait_for_requests(1).await;
    calls.shutdown().await;
    timeout(PATIENCE, rig.cluster.get(&replica_set()))
        .await
        .unwrap()
        .unwrap();
}
