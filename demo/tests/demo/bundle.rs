//! `krane support-bundle`, and the verbs that look into one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, and time is real here"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::story::{Playing, page_of};

/// The exit code, stdout and stderr of a verb.
fn krane(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(crate::krane())
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

/// The bundle of a demo that is over, and a file for what becomes of it.
fn kept_of_a_demo() -> (TempDir, PathBuf, Value) {
    let mut playing = Playing::start(&["--seed", "7", "--json"]);
    let address = page_of(&mut playing);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bundle");
    bundle_of(&address, &file);
    let bundle = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    (folder, file, bundle)
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
        &["log"],
        &["log", "applied", name],
        &["log", "--warnings"],
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
    let (_, text, _) = krane(&["log", "applied", "--from", path]);
    assert!(text.contains("applied  "), "no log lines: {text}");
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

/// A bundle with these answers.
fn bundle(answers: &Value) -> String {
    json!({"apiVersion": "krane/v1", "kind": "SupportBundle", "answers": answers}).to_string()
}

#[test]
fn what_is_no_bundle_is_said_so_and_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle");
    let path = file.to_str().unwrap();
    let other = r#"{"apiVersion": "krane/v9", "kind": "SupportBundle", "answers": {}}"#;
    let now = "2026-11-29T21:57:42Z";
    for (text, words) in [
        ("", "is no support bundle"),
        ("[]", "is no support bundle"),
        (r#"{"kind": "SupportBundle"}"#, "is no support bundle"),
        (other, "krane/v9"),
        (&bundle(&json!({})), "does not have /api/v1/"),
        (&bundle(&json!({"/api/v1/tree": []})), "is no JSON object"),
        (
            &bundle(&json!({"/api/v1/tree": [now, []]})),
            "is no JSON object",
        ),
        (
            &bundle(&json!({"/api/v1/tree": {"taken_at": 1}})),
            "is no support bundle",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        for verb in [
            &["status"][..],
            &["tree"],
            &["tree", "-o", "json"],
            &["explain", "web"],
        ] {
            let (code, out, chatter) = krane(&[verb, &["--from", path]].concat());
            assert_eq!(code, Some(2), "{verb:?} of {text}: {chatter}");
            assert_eq!(out, "", "{text}");
            assert!(
                chatter.contains("krane::admin::bundle"),
                "{text}: {chatter}"
            );
        }
        let (_, _, chatter) = krane(&["tree", "--from", path]);
        assert!(chatter.contains(words), "{text}: {chatter}");
    }
    let (code, _, chatter) = krane(&["status", "--from", "/nowhere/bundle"]);
    assert_eq!(code, Some(2), "{chatter}");
    let (code, _, chatter) = krane(&["status", "-w", "--from", path]);
    assert_eq!(code, Some(2), "nothing changes in a file: {chatter}");
}

/// A file comes from anywhere, and a terminal obeys what it is shown.
#[test]
fn nothing_in_a_bundle_tells_the_terminal_what_to_do_or_takes_for_ever() {
    let (_folder, file, mut bundle) = kept_of_a_demo();
    let path = file.to_str().unwrap();
    let (page, _) = bundle["answers"]
        .as_object()
        .unwrap()
        .iter()
        .find(|(path, _)| path.starts_with("/api/v1/workloads/"))
        .expect("a page");
    // What is asked for stays as it is.
    let name = page.rsplit('/').next().unwrap().replace("%2D", "-");
    let hostile = "\u{1b}[31m\u{7}\u{9b}2J\u{202e}\u{200b}";
    infect(&mut bundle["answers"], hostile);
    bundle["answers"]["/api/v1/tree"]["actors"][1]["depth"] = json!(1_u64 << 60);
    std::fs::write(&file, bundle.to_string()).unwrap();
    for verb in [
        &["status", "-o", "wide"][..],
        &["tree"],
        &["explain", &name],
        &["diff", &name],
        &["events"],
        &["log"],
        &["explain", "\u{1b}[31mnothing"],
        &["man", "\u{1b}[31m"],
    ] {
        let from = if verb[0] == "man" {
            &[][..]
        } else {
            &["--from", path]
        };
        let (code, out, chatter) = krane(&[verb, from].concat());
        assert!(
            code == Some(0) || code == Some(1) || code == Some(2),
            "{verb:?}: {chatter}"
        );
        let all = out + &chatter;
        assert!(!all.is_empty());
        for unseen in hostile.chars().filter(|it| !it.is_ascii_graphic()) {
            assert!(!all.contains(unseen), "{verb:?} {unseen:?}: {all}");
        }
    }
}

/// Puts it behind every text that is no time, level or name of a workload.
fn infect(value: &mut Value, hostile: &str) {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_err() => text.push_str(hostile),
        Value::Array(items) => items.iter_mut().for_each(|item| infect(item, hostile)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if !matches!(name.as_str(), "name" | "namespace" | "controller") {
                    infect(field, hostile);
                }
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn diff_of_a_workload_in_trouble_says_what_to_do_whatever_differs() {
    let (_folder, file, mut bundle) = kept_of_a_demo();
    let pages = bundle["answers"].as_object_mut().unwrap();
    let (_, page) = pages
        .iter_mut()
        .find(|(path, _)| path.starts_with("/api/v1/workloads/deployments/"))
        .expect("a page");
    page["workload"]["level"] = json!("bad");
    page["workload"]["remedy"] = json!("send an image");
    page["verdict"] = json!("Set aside.");
    page["objects"][0]["state"] = json!("missing");
    let name = page["workload"]["name"].as_str().unwrap().to_owned();
    std::fs::write(&file, bundle.to_string()).unwrap();
    let (code, out, chatter) = krane(&["diff", &name, "--from", file.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{chatter}");
    assert!(out.contains("is missing"), "{out}");
    assert!(
        chatter.contains("Set aside.") && chatter.contains("help   send an image"),
        "{chatter}"
    );
}

#[test]
fn a_bundle_is_read_once_from_a_pipe_too() {
    let mut playing = Playing::start(&["--seed", "7", "--json"]);
    let address = page_of(&mut playing);
    let krane = crate::krane();
    let krane = krane.display();
    let line = format!("{krane} support-bundle - --admin {address} | {krane} status --from -");
    let output = Command::new("sh")
        .args(["-c", &line])
        .env_clear()
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("deployments"), "{text}");
}

/// It is made when things are not well.
#[test]
fn what_krane_does_not_answer_is_left_out_and_said() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle");
    let path = file.to_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in server.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let asked = line.split(' ').nth(1).unwrap_or_default().to_owned();
                let (status, body) = match asked.as_str() {
                    "/api/v1/health" => ("200 OK", r#"{"taken_at": "2026-11-29T21:57:42Z"}"#),
                    "/end" => return,
                    _ => ("500 Internal Server Error", r#"{"error": "broken"}"#),
                };
                let length = body.len();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
            }
        });
        let (code, _, chatter) = krane(&["support-bundle", &path, "--admin", &address]);
        let mut end = TcpStream::connect(&address).unwrap();
        end.write_all(b"GET /end HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(code, Some(1), "{chatter}");
        assert!(
            chatter.contains("6 of the answers are missing"),
            "{chatter}"
        );
    });
    let (code, _, chatter) = krane(&["tree", "--from", &path]);
    assert_eq!(code, Some(2));
    assert!(chatter.contains("krane answered 500: broken"), "{chatter}");
}
