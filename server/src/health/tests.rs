//! The answers of the health endpoints, byte by byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::{CheckState, HealthView, Readiness, Standing, router};

struct Fixed {
    live: bool,
    readiness: Readiness,
}

impl HealthView for Fixed {
    fn live(&self) -> bool {
        self.live
    }

    fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }
}

/// Code and body of the three endpoints: live, ready, startup.
async fn answers(live: bool, readiness: Readiness) -> [(u16, String); 3] {
    let router = router(Arc::new(Fixed { live, readiness }));
    let mut answers = Vec::new();
    for path in ["/health/live", "/health/ready", "/health/startup"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json");
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        answers.push((code, String::from_utf8(body.to_vec()).unwrap()));
    }
    answers.try_into().unwrap()
}

fn answer(code: u16, body: &str) -> (u16, String) {
    (code, format!("{body}\n"))
}

#[tokio::test]
async fn before_the_tree_is_up_only_live_is_ok() {
    let not_started = answer(503, r#"{"status":"not started"}"#);
    let ok = answer(200, r#"{"status":"ok"}"#);
    assert_eq!(
        answers(true, Readiness::default()).await,
        [ok, not_started.clone(), not_started]
    );
}

/// (F31) The startup probe killed a process that waited for an API server that was away.
#[tokio::test]
async fn before_the_first_lists_the_process_has_started_and_is_not_ready() {
    let not_started = answer(503, r#"{"status":"not started"}"#);
    let ok = answer(200, r#"{"status":"ok"}"#);
    let started = Readiness {
        started: true,
        ..Readiness::default()
    };
    assert_eq!(answers(true, started).await, [ok.clone(), not_started, ok]);
}

#[tokio::test]
async fn ready_without_checks_is_the_short_body() {
    let ok = answer(200, r#"{"status":"ok"}"#);
    let ready = Readiness {
        started: true,
        ready: true,
        ..Readiness::default()
    };
    assert_eq!(answers(true, ready).await, [ok.clone(), ok.clone(), ok]);
}

/// unkeyed/unkey ecbe818920, PR #6668 (A66): the body showed raw errors, and a failing dependency took the pod out.
#[tokio::test]
async fn a_failing_check_is_in_the_body_and_changes_no_code() {
    let checks = BTreeMap::from([
        ("control_plane".to_owned(), CheckState::Fail),
        ("deployments".to_owned(), CheckState::Ok),
        ("vault".to_owned(), CheckState::Degraded),
    ]);
    let readiness = Readiness {
        started: true,
        ready: true,
        checks,
        ..Readiness::default()
    };
    let [live, ready, _] = answers(true, readiness).await;
    assert_eq!(live.0, 200);
    let body = r#"{"status":"ok","checks":{"control_plane":"fail","deployments":"ok","vault":"degraded"}}"#;
    assert_eq!(ready, answer(200, body));
}

/// A standby serves secrets as well as the one that writes.
#[tokio::test]
async fn who_holds_the_lease_is_in_the_body_and_changes_no_code() {
    let readiness = Readiness {
        started: true,
        ready: true,
        lease: Some(Standing {
            role: "standby",
            since: "2026-11-28T10:00:00.000Z".to_owned(),
            holder: Some("krane-0_1f".to_owned()),
        }),
        ..Readiness::default()
    };
    let [_, ready, _] = answers(true, readiness).await;
    let body = r#"{"status":"ok","lease":{"role":"standby","since":"2026-11-28T10:00:00.000Z","holder":"krane-0_1f"}}"#;
    assert_eq!(ready, answer(200, body));
}

#[tokio::test]
async fn a_stopping_process_is_live_and_gets_no_requests() {
    let ok = answer(200, r#"{"status":"ok"}"#);
    let stopping = answer(503, r#"{"status":"shutting down"}"#);
    for ready in [true, false] {
        let readiness = Readiness {
            started: ready,
            ready,
            stopping: true,
            ..Readiness::default()
        };
        assert_eq!(
            answers(true, readiness).await,
            [ok.clone(), stopping.clone(), ok.clone()]
        );
    }
}

#[tokio::test]
async fn a_watchdog_that_is_not_content_fails_live_alone() {
    let ok = answer(200, r#"{"status":"ok"}"#);
    let ready = Readiness {
        started: true,
        ready: true,
        ..Readiness::default()
    };
    let fail = answer(503, r#"{"status":"fail"}"#);
    assert_eq!(answers(false, ready).await, [fail, ok.clone(), ok]);
}
