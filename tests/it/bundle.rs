//! `krane support-bundle`, and the verbs that look into one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, and time is real here"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::demo::{Playing, page_of};

/// The exit code, stdout and stderr of a verb.
fn krane(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_krane"))
        .args(arguments)
        .env_clear()
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// What a verb tells as JSON, without what changes by itself from one look to the next.
fn told(arguments: &[&str]) -> Value {
    let (code, text, chatter) = krane(&[arguments, &["-o", "json"]].concat());
    let all: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {chatter}"));
    let pick = |list: &Value, fields: &[&str]| -> Value {
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        let of = |item: &Value| fields.iter().map(|field| item[*field].clone()).collect();
        Value::Array(items.iter().map(of).collect())
    };
    json!({
        "code": code,
        "kind": all["kind"],
        "workloads": pick(&all["workloads"]["workloads"], &["namespace", "name", "state", "version"]),
        "matching": all["workloads"]["matching"],
        "actors": pick(&all["actors"], &["path", "depth"]),
        "verdict": all["verdict"],
        "objects": pick(&all["objects"], &["object", "state", "differences"]),
        "events": pick(&all["items"], &["number", "text"]),
    })
}

fn bundle_of(address: &str, file: &Path) {
    // It may be there from a look before.
    let _ = std::fs::remove_file(file);
    let (code, _, chatter) = krane(&["support-bundle", file.to_str().unwrap(), "--admin", address]);
    assert_eq!(code, Some(0), "{chatter}");
    assert!(chatter.contains("--from"), "{chatter}");
}

#[test]
fn a_bundle_answers_as_krane_did_and_the_clock_of_then() {
    let mut playing = Playing::start(&["--seed", "7", "--json"]);
    let address = page_of(&mut playing);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("krane-support.json");
    let path = file.to_str().unwrap();
    let (_, status, _) = krane(&["status", "-o", "json", "--admin", &address]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let first = &status["workloads"]["workloads"][0];
    let name = first["name"].as_str().expect("something is wanted");
    let named = format!("{}/{name}", first["namespace"].as_str().unwrap());
    let start = Instant::now();
    for verb in [
        &["status"][..],
        &["status", name],
        &["status", "no such thing"],
        &["tree"],
        &["explain", &named],
        &["diff", &named],
        &["events"],
        &["events", "--for", &named],
        &["events", "applied"],
    ] {
        // The world goes on: it may have changed between the two looks.
        loop {
            bundle_of(&address, &file);
            let live = told(&[verb, &["--admin", &address]].concat());
            let kept = told(&[verb, &["--from", path]].concat());
            if live == kept {
                break;
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{verb:?}\n{live:#}\n{kept:#}"
            );
        }
    }
    drop(playing);
    let (code, text, chatter) = krane(&["status", "--from", path]);
    assert!(code == Some(0) || code == Some(1), "{chatter}");
    assert!(text.contains("deployments"), "{text}");
    assert!(chatter.contains("this is how it was at 20"), "{chatter}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others could read it");
    let bundle: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let lines = bundle["answers"]["/api/v1/log"]["lines"].as_array();
    assert!(lines.is_some_and(|lines| !lines.is_empty()), "no log lines");
}

#[test]
fn a_bundle_is_written_over_nothing_and_only_by_a_krane_that_answers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    let path = file.to_str().unwrap();
    let (code, _, chatter) = krane(&["support-bundle", path, "--admin", "127.0.0.1:1"]);
    assert_eq!(code, Some(69), "{chatter}");
    assert!(!file.exists(), "nothing was to be told");
    let mut playing = Playing::start(&["--seed", "7", "--json"]);
    let address = page_of(&mut playing);
    std::fs::write(&file, "mine").unwrap();
    let (code, _, chatter) = krane(&["support-bundle", path, "--admin", &address]);
    assert_eq!(code, Some(2), "{chatter}");
    assert!(chatter.contains("krane::admin::bundle"), "{chatter}");
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let (code, text, _) = krane(&["support-bundle", "-", "--admin", &address]);
    assert_eq!(code, Some(0));
    let bundle: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bundle["kind"], "SupportBundle");
}

#[test]
fn what_is_no_bundle_is_said_so_and_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle");
    let path = file.to_str().unwrap();
    let some = |answers: &str| format!(r#"{{"kind": "SupportBundle", "answers": {answers}}}"#);
    for (text, words) in [
        ("", "is no support bundle"),
        ("[]", "is no support bundle"),
        (r#"{"kind": "Status", "answers": {}}"#, "its kind is"),
        (&some("{}"), "does not have /api/v1/"),
        (&some(r#"{"/api/v1/health": []}"#), "makes no sense"),
        (
            &some(r#"{"/api/v1/health": {}, "/api/v1/workloads": {"workloads": 1}}"#),
            "krane::admin::answer",
        ),
        (&some(r#"{"/api/v1/workloads": [1]}"#), "krane::admin::"),
    ] {
        std::fs::write(&file, text).unwrap();
        for verb in [&["status"][..], &["explain", "web"]] {
            let (code, out, chatter) = krane(&[verb, &["--from", path]].concat());
            assert!(
                code == Some(2) || code == Some(69),
                "{text}: {code:?} {chatter}"
            );
            assert_eq!(out, "", "{text}");
            let told = chatter.contains("krane::admin::");
            assert!(told, "{text} must be said to be none ({words}): {chatter}");
        }
        let (_, _, chatter) = krane(&["status", "--from", path]);
        assert!(chatter.contains(words), "{text}: {chatter}");
    }
    let (code, _, chatter) = krane(&["status", "--from", "/nowhere/bundle"]);
    assert_eq!(code, Some(2), "{chatter}");
    let (code, _, chatter) = krane(&["status", "-w", "--from", path]);
    assert_eq!(code, Some(2), "nothing changes in a file: {chatter}");
}
