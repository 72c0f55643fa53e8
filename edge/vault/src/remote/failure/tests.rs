//! The table of the module.

use http::StatusCode;
use krane_ports::VaultFailureKind::{Refused, Unavailable};
use krane_ports::{VaultFailure, VaultFailureKind};
use serde_json::json;

use super::Failure;

fn said(status: u16, body: &str) -> VaultFailure {
    let status = StatusCode::from_u16(status).unwrap();
    Failure::of_answer(status, Some(&body.as_bytes().to_vec())).into()
}

fn check(status: u16, body: &str, kind: VaultFailureKind, code: &str) {
    let failure = said(status, body);
    assert_eq!(
        (failure.kind, failure.code),
        (kind, code),
        "{status} {body}"
    );
}

#[test]
fn what_the_vault_says_itself() {
    let check = |code: &str, kind| {
        let body = json!({ "code": code, "message": "echo canary" }).to_string();
        check(500, &body, kind, code);
    };
    for code in [
        "unavailable",
        "resource_exhausted",
        "deadline_exceeded",
        "canceled",
        "aborted",
    ] {
        check(code, Unavailable);
    }
    for code in [
        "unauthenticated",
        "permission_denied",
        "invalid_argument",
        "not_found",
        "already_exists",
        "failed_precondition",
        "out_of_range",
        "data_loss",
        "internal",
        "unknown",
        "unimplemented",
    ] {
        check(code, Refused);
    }
}

#[test]
fn what_others_say_in_front_of_it() {
    let page = "<html>502</html>";
    check(400, page, Unavailable, "internal");
    check(401, page, Refused, "unauthenticated");
    check(403, page, Refused, "permission_denied");
    check(404, page, Unavailable, "unimplemented");
    check(429, page, Unavailable, "unavailable");
    check(500, page, Unavailable, "unknown");
    check(502, page, Unavailable, "unavailable");
    check(503, "", Unavailable, "unavailable");
    check(504, page, Unavailable, "unavailable");
    check(302, page, Unavailable, "unknown");
    check(204, "", Unavailable, "unknown");
    // JSON, and no code of the protocol in it.
    check(500, "{}", Unavailable, "unknown");
    check(500, r#"{"code": 13}"#, Unavailable, "unknown");
    check(503, r#"{"code": "oops"}"#, Unavailable, "unavailable");
    check(500, r#"{"code": "ok"}"#, Unavailable, "unknown");
    check(500, r#"["internal"]"#, Unavailable, "unknown");
}

#[test]
fn nothing_of_an_answer_but_its_code_is_kept() {
    let canary = "canary-5d41402abc4b2a76";
    for body in [
        json!({ "code": "internal", "message": canary, "details": [canary] }).to_string(),
        json!({ "code": canary }).to_string(),
        canary.to_owned(),
    ] {
        let failure = said(500, &body);
        assert!(!format!("{failure} {failure:?}").contains(canary));
    }
}
