//! What a request may say about itself.

use axum::body::Body;
use http::{HeaderValue, Request};

use super::{ECHO, HANG, REFUSE, check_error, json, request, send};

const EMPTY: &str = "{\"envVars\":{\"BLOB\":\"\",\"DEPLOYMENT\":\"\",\"ENVIRONMENT\":\"\"}}";

#[tokio::test]
async fn only_post_is_offered() {
    for method in ["GET", "PUT", "HEAD", "DELETE", "OPTIONS"] {
        let request = Request::builder()
            .method(method)
            .uri(format!("{ECHO}?connect=v1&encoding=json&message=%7B%7D"));
        let answer = send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.headers["allow"], "POST");
        assert!(answer.body.is_empty(), "{method}");
    }
}

#[tokio::test]
async fn a_path_that_is_not_served_is_not_found() {
    for path in ["/test.Echo/Nothing", "/test.Echo/", "/test.Echo/Tell/"] {
        assert_eq!(json(path, "{}").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_codec_is_the_one_that_was_named() {
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        "application/json; charset=\"utf-8\"",
    ] {
        let answer = send(request(ECHO, &[("content-type", kind)], "{}")).await;
        assert_eq!((answer.status, answer.text()), (200, EMPTY), "{kind}");
        assert_eq!(answer.content_type(), "application/json");
    }
    let answer = send(request(ECHO, &[("content-type", "application/proto")], "")).await;
    assert_eq!(
        (answer.status, answer.content_type()),
        (200, "application/proto")
    );
}

#[tokio::test]
async fn other_content_types_are_refused() {
    for kind in [
        "",
        "application/protobuf",
        "application/x-protobuf",
        "application/jsonp",
        "application/json; charset=latin1",
        "application/json; charset=utf-8; charset=utf-8",
        "application/json; boundary=x",
        "application/proto; charset=utf-8",
        "application/connect+proto",
        "application/connect+json",
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/json, application/proto",
    ] {
        let answer = send(request(ECHO, &[("content-type", kind)], "{}")).await;
        assert_eq!((answer.status, answer.text()), (415, ""), "{kind}");
        let accepted = &answer.headers["accept-post"];
        assert_eq!(accepted, "application/json, application/proto");
    }
    let twice = [
        ("content-type", "application/json"),
        ("content-type", "application/proto"),
    ];
    assert_eq!(send(request(ECHO, &twice, "{}")).await.status, 415);
    assert_eq!(send(request(ECHO, &[], "{}")).await.status, 415);
    let mut odd = request(ECHO, &[], "{}");
    let odd_value = HeaderValue::from_bytes(b"application/json\xff").unwrap();
    odd.headers_mut().insert("content-type", odd_value);
    assert_eq!(send(odd).await.status, 415);
}

#[tokio::test]
async fn the_version_of_the_protocol_is_one_or_not_said() {
    let with = |version| {
        request(
            ECHO,
            &[
                ("content-type", "application/json"),
                ("connect-protocol-version", version),
            ],
            "{}",
        )
    };
    assert_eq!(send(with("1")).await.status, 200);
    for version in ["", "0", "2", "01", "1.0", "1, 1", "x"] {
        check_error(&send(with(version)).await, 400, "invalid_argument");
    }
}

#[tokio::test]
async fn compressed_requests_are_unimplemented() {
    let with = |encoding| {
        request(
            ECHO,
            &[
                ("content-type", "application/json"),
                ("content-encoding", encoding),
            ],
            "{}",
        )
    };
    for encoding in ["identity", ""] {
        assert_eq!(send(with(encoding)).await.status, 200, "{encoding:?}");
    }
    for encoding in ["gzip", "br", "GZIP", "identity, gzip", "\u{1F600}"] {
        let answer = send(with(encoding)).await;
        check_error(&answer, 501, "unimplemented");
        assert!(
            answer.text().contains("[identity]"),
            "what is supported is said"
        );
    }
}

#[tokio::test]
async fn answers_are_never_compressed() {
    let asking = [
        ("content-type", "application/json"),
        ("accept-encoding", "gzip, br"),
    ];
    let answer = send(request(ECHO, &asking, "{}")).await;
    assert_eq!(answer.text(), EMPTY);
    assert!(!answer.headers.contains_key("content-encoding"));
}

fn timed(path: &str, timeout: &str) -> Request<Body> {
    let headers = [
        ("content-type", "application/json"),
        ("connect-timeout-ms", timeout),
    ];
    request(path, &headers, "{}")
}

#[tokio::test]
async fn a_timeout_is_a_number_of_at_most_ten_digits() {
    for timeout in ["1000", "9999999999", "0000060000"] {
        assert_eq!(send(timed(ECHO, timeout)).await.status, 200, "{timeout}");
    }
    for timeout in [
        "",
        "-1",
        "+1",
        "1.5",
        "1s",
        " 1",
        "0x10",
        "10000000000",
        "\u{664}",
    ] {
        let answer = send(timed(ECHO, timeout)).await;
        check_error(&answer, 400, "invalid_argument");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline() {
    check_error(&send(timed(HANG, "0")).await, 504, "deadline_exceeded");
    check_error(&send(timed(HANG, "90000")).await, 504, "deadline_exceeded");
    // The time it takes to send the request is part of it.
    let never = Body::from_stream(futures::stream::pending::<
        Result<bytes::Bytes, std::io::Error>,
    >());
    let mut half = timed(ECHO, "90000");
    *half.body_mut() = never;
    check_error(&send(half).await, 504, "deadline_exceeded");
}

#[tokio::test]
async fn an_error_is_json_in_either_codec() {
    for kind in ["application/json", "application/proto"] {
        let answer = send(request(REFUSE, &[("content-type", kind)], "")).await;
        assert_eq!(
            (answer.status, answer.content_type()),
            (409, "application/json")
        );
        assert_eq!(
            answer.text(),
            r#"{"code":"aborted","message":"say \"no\"\n"}"#
        );
    }
}
