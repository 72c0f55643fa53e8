use serde_json::{Value, json};

use super::*;

fn health(problem: &Value) -> told::Health {
    let health = json!({
        "taken_at": "2027-01-15T08:10:00.000Z",
        "identity": {
            "instance": "krane-0", "region": "us-east-1", "platform": "aws", "short_version": "0.1.0"
        },
        "level": "bad",
        "sentence": "1 state set aside",
        "problems": [problem],
        "more": 0,
        "lease": null,
    });
    serde_json::from_value(health).unwrap()
}

#[test]
fn a_tree_is_followed_like_a_status() {
    use clap::Parser as _;
    for verb in ["status", "tree"] {
        let parsed = crate::cli::Cli::try_parse_from(["krane", verb, "-w"]);
        assert!(parsed.is_ok(), "{verb}");
    }
}

/// While a vault is configured (D50).
#[test]
fn it_says_whether_pods_that_ask_for_secrets_are_proved() {
    let health = json!({
        "taken_at": "2027-01-15T08:10:00.000Z",
        "identity": {
            "instance": "krane-1", "region": "us-east-1", "platform": "aws", "short_version": "0.1.0"
        },
        "level": "good",
        "sentence": "Standing by",
        "problems": [],
        "more": 0,
        "lease": null,
        "secrets": {
            "unproved_because": "this process is a standby and follows no stream",
            "unproved": 3,
            "reasons": [{"reason": "standby", "count": 3}],
        },
    });
    let health: told::Health = serde_json::from_value(health).unwrap();
    insta::assert_snapshot!(headline(&health, Now(health.taken_at)), @"
    ✔ Standing by
      krane-1, us-east-1 (aws), krane 0.1.0
      secrets: pods are not compared with the desired state: this process is a standby and follows no stream
      secrets: 3 given without that proof so far
    ");
}

#[test]
fn a_problem_says_since_when_why_and_what_to_do() {
    let health = health(&json!({
        "level": "bad", "what": "shop/web, version 7", "why": "the image is none",
        "since": "2027-01-15T08:07:00.000Z", "next_try": "2027-01-15T08:10:40.000Z",
        "remedy": "send an image",
    }));
    insta::assert_snapshot!(headline(&health, Now(health.taken_at)), @"
    ✗ 1 state set aside
      krane-0, us-east-1 (aws), krane 0.1.0

    ✗ shop/web, version 7
      ├ since 3 min
      ├ why   the image is none
      ├ next  try in 40 s
      ╰ help  send an image
    ");
}
