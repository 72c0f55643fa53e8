//! Answers of things that are no gRPC server: proxies, load balancers, web servers.

use http::Response;
use krane_ports::{ControlPlane as _, RpcFailureKind, StreamEnd};

use super::server::Server;
use super::{Events, access, plane, question};

const PAGE: &str = "<html><body>sorry</body></html>";

/// Asks one question and opens one stream; both get this answer.
async fn check(status: u16, headers: &[(&str, &str)], body: &'static str, code: &str, hint: &str) {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let response = || {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(body).unwrap()
    };
    let case = format!("HTTP {status} {headers:?} {body:?}");

    let question = question();
    let (answer, ()) = tokio::join!(plane.desired(&question), async {
        server.call().await.http(response());
    });
    let failure = answer.expect_err("a foreign answer must be no answer");
    assert_eq!(failure.kind, RpcFailureKind::Transport, "{case}: {failure}");
    assert_eq!(failure.code, code, "{case}: {failure}");
    assert!(failure.message.contains(hint), "{case}: {failure}");

    let mut events = Events::of(&plane, 0).await;
    let (end, ()) = tokio::join!(events.ended(), async {
        server.call().await.http(response());
    });
    let StreamEnd {
        code: end_code,
        message,
        is_oversize,
    } = end;
    assert_eq!((end_code, is_oversize), (code, false), "{case}: {message}");
    assert!(message.contains(hint), "{case}: {message}");
}

#[tokio::test]
async fn pages_of_proxies_are_never_an_answer() {
    let html = [("content-type", "text/html")];
    check(200, &html, PAGE, "unknown", "text/html").await;
    check(401, &html, PAGE, "unauthenticated", "HTTP 401").await;
    check(403, &html, PAGE, "permission_denied", "HTTP 403").await;
    check(404, &html, PAGE, "unimplemented", "HTTP 404").await;
    check(429, &html, PAGE, "unavailable", "HTTP 429").await;
    check(502, &html, PAGE, "unavailable", "every proxy on the way").await;
    check(503, &html, PAGE, "unavailable", "control.url").await;
    check(404, &[], "", "unimplemented", "HTTP 404").await;
    check(500, &[], "", "unknown", "HTTP 500").await;
}

/// Whoever puts a gRPC status on an HTTP 404 is a proxy that does not know the path.
#[tokio::test]
async fn a_proxy_that_speaks_some_grpc_finds_nothing_either() {
    let grpc = ("content-type", "application/grpc");
    check(404, &[grpc], "", "unimplemented", "HTTP 404").await;
    check(
        404,
        &[grpc, ("grpc-status", "5")],
        "",
        "unimplemented",
        "HTTP 404",
    )
    .await;
    check(
        200,
        &[("content-type", "text/html"), ("grpc-status", "5")],
        "",
        "unknown",
        "text/html",
    )
    .await;
    check(
        200,
        &[("grpc-status", "5")],
        "",
        "unknown",
        "no gRPC answer",
    )
    .await;
    check(
        200,
        &[
            ("content-type", "application/grpc-web"),
            ("grpc-status", "5"),
        ],
        "",
        "unknown",
        "",
    )
    .await;
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let location = [(
        "location",
        "https://other.example/login?secret=hunter2-canary",
    )];
    check(
        307,
        &location,
        "",
        "unknown",
        "to https://other.example, and krane",
    )
    .await;
    check(308, &[], "", "unknown", "another path").await;
}
