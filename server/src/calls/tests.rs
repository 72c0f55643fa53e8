//! How calls are counted.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use prometheus::{Registry, TextEncoder};
use tonic::{Code, Status};

use super::{Call, CallFamilies, Calls, MOST_CALLS_OF_ONE};
use crate::bounds::CALLS;

const METHOD: &str = "/krane.v1.SecretsService/DecryptSecretsBlob";
const PROBE: &str = "/grpc.health.v1.Health/Check";

fn calls() -> (Calls, Registry) {
    let registry = Registry::new();
    let families = CallFamilies::register(&registry).unwrap();
    (Calls::new(families, [METHOD, PROBE]), registry)
}

/// The lines of the counter that counted something, without its name.
fn counted(registry: &Registry) -> Vec<String> {
    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("krane_rpc_requests_total"))
        .filter(|line| !line.ends_with(" 0"));
    lines.map(str::to_owned).collect()
}

fn line(code: &str, times: usize) -> String {
    let method = METHOD.trim_start_matches('/');
    format!("{{code=\"{code}\",method=\"{method}\"}} {times}")
}

#[test]
fn a_path_that_nobody_serves_makes_no_series() {
    let (calls, registry) = calls();
    for path in [
        "/",
        "",
        "/krane.v1.SecretsService/Other",
        "krane.v1.SecretsService/DecryptSecretsBlob",
    ] {
        assert!(calls.begin(path, None).is_none(), "{path}");
    }
    assert!(counted(&registry).is_empty());
}

#[test]
fn the_code_of_a_plain_answer_is_counted() {
    for (response, code) in [
        ("{}".into_response(), "ok"),
        (StatusCode::NOT_FOUND.into_response(), "unimplemented"),
        (StatusCode::METHOD_NOT_ALLOWED.into_response(), "unknown"),
        (crate::connect::refusal(&Status::aborted("")), "aborted"),
        (
            crate::connect::refusal(&Status::new(Code::Ok, "")),
            "unknown",
        ),
    ] {
        let (calls, registry) = calls();
        calls.begin(METHOD, None).unwrap().end_http(&response);
        assert_eq!(counted(&registry), [line(code, 1)]);
    }
}

#[test]
fn a_call_that_is_given_up_is_counted_as_canceled() {
    let (calls, registry) = calls();
    drop(calls.begin(METHOD, None));
    assert_eq!(counted(&registry), [line("canceled", 1)]);
}

fn streamed(trailers: Option<Status>) -> Response {
    let data = http_body::Frame::data(bytes::Bytes::from_static(b"x"));
    let mut frames = vec![Ok::<_, std::convert::Infallible>(data)];
    if let Some(status) = trailers {
        let mut headers = http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        frames.push(Ok(http_body::Frame::trailers(headers)));
    }
    Response::new(Body::new(StreamBody::new(stream::iter(frames))))
}

#[tokio::test]
async fn the_code_of_a_grpc_answer_is_counted_where_it_stands() {
    for (response, code) in [
        (
            Status::unauthenticated("x").into_http::<Body>(),
            "unauthenticated",
        ),
        (streamed(Some(Status::new(Code::Ok, ""))), "ok"),
        (streamed(Some(Status::data_loss("x"))), "data_loss"),
        (streamed(None), "unknown"),
    ] {
        let (calls, registry) = calls();
        let response = calls.begin(METHOD, None).unwrap().follow_grpc(response);
        let _ = response.into_body().collect().await.unwrap();
        assert_eq!(counted(&registry), [line(code, 1)]);
    }
    let (calls, registry) = calls();
    drop(
        calls
            .begin(METHOD, None)
            .unwrap()
            .follow_grpc(streamed(None)),
    );
    assert_eq!(counted(&registry), [line("canceled", 1)]);
}

#[test]
fn beyond_the_limit_calls_are_refused_and_probes_are_not() {
    let (calls, registry) = calls();
    let peer = |number: usize| {
        Some(std::net::IpAddr::from([
            10,
            0,
            0,
            u8::try_from(number).unwrap(),
        ]))
    };
    let begin = |number| calls.begin(METHOD, peer(number)).unwrap();
    let admitted = |call: &Call| call.receive(Request::new(Body::empty())).map(drop);
    // Two take all that is shared, and a few more all but one of what is guaranteed.
    let greedy = CALLS.shared / (MOST_CALLS_OF_ONE - CALLS.guaranteed);
    let mut running: Vec<_> = (0..=greedy)
        .flat_map(|sender| (0..MOST_CALLS_OF_ONE).map(move |_| sender))
        .map(begin)
        .filter(|call| admitted(call).is_ok())
        .collect();
    let all = CALLS.shared + (greedy + 1) * CALLS.guaranteed;
    assert_eq!(running.len(), all);
    let refused: Vec<_> = (0..=CALLS.guaranteed).map(|_| begin(200)).collect();
    let codes: Vec<_> = refused.iter().map(|call| admitted(call).is_ok()).collect();
    assert_eq!(codes, [true, true, false], "its own, and no more");
    assert!(admitted(&calls.begin(PROBE, peer(200)).unwrap()).is_ok());
    running.pop();
    assert!(admitted(&begin(201)).is_ok());
    drop((running, refused));
    assert!(!counted(&registry).is_empty());
}
