//! Who may look.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{Request, StatusCode};
use krane_domain::ids::ObjectKey;

use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_page_on_loopback_is_shown_under_loopback_names_only() {
    let world = World::new();
    for (host, expected) in [
        ("localhost:9091", StatusCode::OK),
        ("127.0.0.1:40123", StatusCode::OK),
        ("[::1]:9091", StatusCode::OK),
        ("rebound.evil.example:9091", StatusCode::FORBIDDEN),
        ("localhost.evil.example", StatusCode::FORBIDDEN),
        ("localhost:80@evil.example", StatusCode::FORBIDDEN),
        ("[::1]evil.example", StatusCode::FORBIDDEN),
    ] {
        for path in ["/", "/api/v1/tree", "/api/v1/stream", "/assets/page.js"] {
            if expected == StatusCode::OK && path == "/api/v1/stream" {
                continue;
            }
            let answer = world.ask(Request::get(path).header("host", host)).await;
            assert_eq!(answer.status, expected, "{host}{path}");
        }
    }
    let twice = Request::get("/").header("host", "localhost");
    let twice = world.ask(twice.header("host", "evil.example")).await;
    assert_eq!(twice.status, StatusCode::FORBIDDEN);
    let nameless = world.ask(Request::get("/")).await;
    assert_eq!(nameless.status, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn with_a_token_nothing_is_shown_without_it() {
    let world = World::with("10.0.0.1:9091", Some("tok:en with spaces"), None);
    let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
    let right = [
        "Bearer tok:en with spaces".to_owned(),
        "bearer tok:en with spaces".to_owned(),
        basic("anybody:tok:en with spaces"),
    ];
    let wrong = [
        "Bearer tok:en with space".to_owned(),
        "Bearer ".to_owned(),
        "tok:en with spaces".to_owned(),
        basic("tok:en with spaces"),
        "Basic !!!".to_owned(),
        "Digest tok:en with spaces".to_owned(),
    ];
    for path in [
        "/",
        "/parts/tree",
        "/api/v1/workloads",
        "/assets/page.css",
        "/nowhere",
    ] {
        let answer = world
            .ask(Request::get(path).header("host", "krane.example"))
            .await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(
            answer.headers["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Basic")
        );
        for value in &wrong {
            let answer = world
                .ask(Request::get(path).header("authorization", value))
                .await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path} {value}");
        }
    }
    for value in &right {
        let request = Request::get("/").header("authorization", value);
        let answer = world.ask(request.header("host", "krane.example")).await;
        assert_eq!(answer.status, StatusCode::OK, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_beyond_loopback_without_a_token_shows_nothing() {
    let world = World::with("0.0.0.0:9091", None, None);
    let answer = world.get("/").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn every_answer_says_how_it_may_be_used() {
    let world = World::new();
    for path in [
        "/",
        "/parts/tree",
        "/api/v1/tree",
        "/assets/page.js",
        "/nowhere",
    ] {
        let headers = world.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert_eq!(headers["x-frame-options"], "DENY", "{path}");
        assert!(
            !headers.contains_key("access-control-allow-origin"),
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_changed_without_a_demo() {
    let world = World::new();
    for path in ["/", "/demo", "/api/v1/tree", "/parts/tree"] {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let request = Request::builder().method(method).uri(path);
            let answer = world.ask(request.header("host", "localhost")).await;
            assert!(
                matches!(
                    answer.status,
                    StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND
                ),
                "{method} {path}: {}",
                answer.status
            );
        }
    }
    assert!(!world.get("/").await.text.contains("<form method=\"post\""));
}

/// D7: the one change without `admin.actions`, for programs that say what they want.
#[tokio::test(start_paused = true)]
async fn held_deletes_are_let_go_by_who_asks_for_exactly_that() {
    let world = World::new();
    let keys: BTreeSet<_> = (0..9)
        .map(|number| ObjectKey::new("ns", format!("d{number}")))
        .collect();
    world.store.inside(|memory| {
        memory.brake.judge(keys.clone(), 20, 10, world.board.now());
    });
    let held = || world.store.inside(|memory| memory.brake.held().len());
    let path = "/api/v1/controllers/deployments/allow-deletes";
    let ask = |path, value| {
        let request = Request::post(path).header("x-krane-confirm", value);
        world.ask(request.header("host", "localhost"))
    };
    assert_eq!(ask(path, "").await.status, StatusCode::FORBIDDEN);
    let unknown = ask("/api/v1/controllers/x/allow-deletes", "allow-deletes");
    assert_eq!(unknown.await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get(path).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(held(), 9);
    let answer = ask(path, "allow-deletes").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text.contains("ns/d8"), "{}", answer.text);
    assert_eq!(held(), 0);
}
