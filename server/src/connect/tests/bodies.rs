//! What may stand in a body.

use std::convert::Infallible;
use std::io;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use krane_proto::krane::v1::{DecryptSecretsBlobRequest, DecryptSecretsBlobResponse};
use prost::Message as _;

use super::{APPLY, CANARY, ECHO, check_error, json, post};
use crate::connect::{DISCARDED, LARGEST_REQUEST};

/// `{encrypted_blob: "{}", environment_id: "env_1", token: "t", deployment_id: "d_1"}`
pub(super) const GOLDEN: &[u8] = b"\x0a\x02{}\x12\x05env_1\x1a\x01t\x22\x03d_1";
pub(super) const GOLDEN_JSON: &str =
    r#"{"encryptedBlob":"e30=","environmentId":"env_1","token":"t","deploymentId":"d_1"}"#;
const ANSWER: &[u8] =
    b"\x0a\x0a\x0a\x04BLOB\x12\x02{}\x0a\x11\x0a\x0aDEPLOYMENT\x12\x03d_1\x0a\x14\x0a\x0bENVIRONMENT\x12\x05env_1";
const ANSWER_JSON: &str = r#"{"envVars":{"BLOB":"{}","DEPLOYMENT":"d_1","ENVIRONMENT":"env_1"}}"#;

#[tokio::test]
async fn a_message_is_read_and_written_as_documented() {
    let answer = post(ECHO, "application/proto", GOLDEN).await;
    assert_eq!((answer.status, &answer.body[..]), (200, ANSWER));
    let answer = json(ECHO, GOLDEN_JSON).await;
    assert_eq!((answer.status, answer.text()), (200, ANSWER_JSON));
}

#[tokio::test]
async fn an_empty_body_is_an_empty_message() {
    for kind in ["application/proto", "application/json"] {
        assert_eq!(post(ECHO, kind, "").await.status, 200, "{kind}");
    }
}

/// A newer caller may say more.
#[tokio::test]
async fn unknown_fields_are_passed_over() {
    let more = GOLDEN_JSON.replacen('{', r#"{"later":{"list":[1,null,{"x":true}]},"#, 1);
    assert_eq!(json(ECHO, more).await.text(), ANSWER_JSON);
    let mut more = b"\xfa\x01\x03new\x80\x02\x07".to_vec();
    more.extend_from_slice(GOLDEN);
    let answer = post(ECHO, "application/proto", more).await;
    assert_eq!((answer.status, &answer.body[..]), (200, ANSWER));
}

#[tokio::test]
async fn json_may_be_spelled_in_several_ways() {
    for spelled in [
        r#"{"encrypted_blob":"e30=","environment_id":"env_1","token":"t","deployment_id":"d_1"}"#,
        r#"{"encryptedBlob":"e30","environmentId":"env_1","deploymentId":"d_1"}"#,
        " {\n \"encryptedBlob\" : \"e30=\", \"environmentId\":\"\\u0065nv_1\",\"deploymentId\":\"d_1\" }\n",
    ] {
        assert_eq!(json(ECHO, spelled).await.text(), ANSWER_JSON, "{spelled}");
    }
}

#[tokio::test]
async fn what_is_no_json_of_the_message_is_refused_without_repeating_it() {
    let deep = "[".repeat(100_000);
    let nested = format!("{{\"x\":{}", "{\"x\":".repeat(100_000));
    let closed = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for body in [
        "{",
        "[]",
        "null",
        "1",
        "\"text\"",
        "{}{}",
        "{} x",
        "{'token':'t'}",
        &format!(r#"{{"token":"{CANARY}","token":"{CANARY}"}}"#),
        &format!(r#"{{"deploymentId":"a","deployment_id":"{CANARY}"}}"#),
        &format!(r#"{{"token":["{CANARY}"]}}"#),
        &format!(r#"{{"token":{{"{CANARY}":1}}}}"#),
        &format!(r#"{{"encryptedBlob":"{CANARY}!"}}"#),
        &format!(r#"{{"token":"{CANARY}"#),
        r#"{"token":1}"#,
        r#"{"token":true}"#,
        r#"{"token":"\ud800"}"#,
        &deep,
        &nested,
        &closed,
    ] {
        let answer = json(ECHO, body.to_owned()).await;
        check_error(&answer, 400, "invalid_argument");
    }
    let answer = json(ECHO, &b"{\"token\":\"\xff\"}"[..]).await;
    check_error(&answer, 400, "invalid_argument");
}

#[tokio::test]
async fn numbers_keep_their_range() {
    for good in [
        r#"{"cpuMillicores":"9223372036854775807","replicas":-1}"#,
        r#"{"cpuMillicores":250,"replicas":"2","buildId":"b"}"#,
    ] {
        let answer = json(APPLY, good).await;
        assert_eq!((answer.status, answer.text()), (200, "{}"), "{good}");
    }
    for bad in [
        r#"{"replicas":2147483648}"#,
        r#"{"cpuMillicores":"9223372036854775808"}"#,
        r#"{"replicas":1.5}"#,
        r#"{"replicas":1e99}"#,
        r#"{"replicas":"two"}"#,
        r#"{"replicas":[]}"#,
    ] {
        check_error(&json(APPLY, bad).await, 400, "invalid_argument");
    }
}

#[tokio::test]
async fn protobuf_that_breaks_off_is_refused() {
    for length in 1..GOLDEN.len() {
        let answer = post(ECHO, "application/proto", &GOLDEN[..length]).await;
        let is_whole = DecryptSecretsBlobRequest::decode(&GOLDEN[..length]).is_ok();
        assert_eq!(answer.status == 200, is_whole, "{length} bytes");
        if !is_whole {
            check_error(&answer, 400, "invalid_argument");
        }
    }
    for bad in [
        &b"\xff\xff\xff\xff"[..],
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x1a\x02\xc3\x28",
        b"\x0b\x0b\x0b\x0b",
        b"\x08\x01",
    ] {
        check_error(
            &post(ECHO, "application/proto", bad).await,
            400,
            "invalid_argument",
        );
    }
    let groups = vec![0x53; 1_000_000];
    check_error(
        &post(ECHO, "application/proto", groups).await,
        400,
        "invalid_argument",
    );
}

#[tokio::test]
async fn the_largest_request_is_two_mebibytes() {
    let blob = |length| {
        let message = DecryptSecretsBlobRequest {
            encrypted_blob: vec![b'x'; length].into(),
            ..DecryptSecretsBlobRequest::default()
        };
        message.encode_to_vec()
    };
    // Tag and length take four bytes.
    let largest = blob(LARGEST_REQUEST - 4);
    assert_eq!(largest.len(), LARGEST_REQUEST);
    let answer = post(ECHO, "application/proto", largest).await;
    let message = DecryptSecretsBlobResponse::decode(&answer.body[..]).unwrap();
    assert_eq!(message.env_vars["BLOB"].len(), LARGEST_REQUEST - 4);

    let one_more = blob(LARGEST_REQUEST - 3);
    assert_eq!(one_more.len(), LARGEST_REQUEST + 1);
    for kind in ["application/proto", "application/json"] {
        let answer = post(ECHO, kind, one_more.clone()).await;
        check_error(&answer, 429, "resource_exhausted");
    }
}

/// A body without an end is not read to it.
#[tokio::test]
async fn a_body_without_end_is_read_no_further_than_it_may_be() {
    let chunk = Bytes::from(vec![b' '; 64 * 1024]);
    let endless = stream::repeat(Ok::<_, Infallible>(chunk));
    let answer = json(ECHO, Body::from_stream(endless)).await;
    check_error(&answer, 429, "resource_exhausted");

    // One that says how long it is is not read at all.
    let announced = Body::from(vec![b' '; LARGEST_REQUEST + DISCARDED + 1]);
    check_error(&json(ECHO, announced).await, 429, "resource_exhausted");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_answered_without_the_reason() {
    let broken = stream::iter([
        Ok(Bytes::from_static(b"{\"token\":\"")),
        Err(io::Error::other(CANARY)),
    ]);
    check_error(
        &json(ECHO, Body::from_stream(broken)).await,
        499,
        "canceled",
    );
}
