//! Whatever a body is, it is answered, and as the protocol has it.

use krane_testfuzz::Fuzz;
use serde_json::Value;
use tokio::runtime::Builder;

use super::bodies::{GOLDEN, GOLDEN_JSON};
use super::{APPLY, Answer, ECHO, post};

const WORDS: [&str; 9] = [
    "null",
    "{}",
    "\"token\":",
    "\"encrypted_blob\":",
    "-1",
    "1e99",
    "\\ud800",
    "\u{7f}\u{ff}",
    "\"cpuMillicores\":\"9223372036854775808\"",
];

fn check(answer: &Answer) {
    if answer.status == 200 {
        return;
    }
    assert_eq!(answer.status, 400, "{}", answer.text());
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(error["code"], "invalid_argument", "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
}

fn read(kind: &str, document: impl Into<Vec<u8>>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let fuzz = Fuzz::new("Connect body").document(document).words(WORDS);
    fuzz.run(|body| {
        for path in [ECHO, APPLY] {
            check(&runtime.block_on(post(path, kind, body.to_vec())));
        }
    });
}

#[test]
fn every_body_in_json_is_answered() {
    read("application/json", GOLDEN_JSON);
}

#[test]
fn every_body_in_protobuf_is_answered() {
    read("application/proto", GOLDEN);
}
