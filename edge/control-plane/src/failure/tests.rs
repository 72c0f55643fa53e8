use std::sync::Arc;

use krane_ports::{RpcFailure, RpcFailureKind, StreamEnd};
use secrecy::SecretString;
use tonic::Status;

use super::{Failure, SecondTry};

fn token() -> SecretString {
    SecretString::from("hunter2-canary")
}

#[test]
fn an_error_of_the_server_is_its_answer() {
    let failure = Failure::of(&Status::unavailable("later"), true, &token());
    assert_eq!(failure.kind, RpcFailureKind::Answered);
    assert_eq!(failure.second_try, SecondTry::Pointless);
    assert_eq!(
        RpcFailure::from(failure),
        RpcFailure {
            kind: RpcFailureKind::Answered,
            code: "unavailable",
            message: "later".to_owned(),
        }
    );
}

#[test]
fn a_status_made_up_on_our_side_is_the_transports() {
    let failure = Failure::of(&Status::not_found("made up"), false, &token());
    assert_eq!(failure.kind, RpcFailureKind::Transport);
}

#[test]
fn a_message_over_the_limit_is_no_matter_of_the_way() {
    let text = "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes";
    let failure = Failure::of(&Status::out_of_range(text), false, &token());
    assert_eq!(failure.kind, RpcFailureKind::Answered);
    assert!(StreamEnd::from(failure).is_oversize);
    let said_by_server = Failure::of(&Status::out_of_range(text), true, &token());
    assert!(!said_by_server.is_oversize);
}

#[test]
fn causes_are_told_once_each() {
    let mut status = Status::unknown("outer: inner");
    status.set_source(Arc::new(std::io::Error::other("inner")));
    assert_eq!(
        Failure::of(&status, false, &token()).message,
        "outer: inner"
    );
    let mut status = Status::unknown("outer");
    status.set_source(Arc::new(std::io::Error::other("inner")));
    assert_eq!(
        Failure::of(&status, false, &token()).message,
        "outer: inner"
    );
}

#[test]
fn a_token_that_the_server_sends_back_is_not_told_on() {
    let status = Status::unauthenticated("\"Bearer hunter2-canary\" is wrong");
    let failure = Failure::of(&status, true, &token());
    assert_eq!(failure.message, "\"Bearer <token>\" is wrong");
}

#[test]
fn a_message_is_one_line_and_not_too_long() {
    let status = Status::internal(format!("a\nb\t{}", "ü".repeat(2000)));
    let message = Failure::of(&status, true, &token()).message;
    assert!(message.starts_with("a b ü"));
    assert!(message.len() <= 1024 + '…'.len_utf8());
}
