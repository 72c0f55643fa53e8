//! `krane-demo` as its audience has it: a process, its lines and its exit code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, and time is real here"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// The families that an operator is promised, each there at the first scrape. Those of requests to
/// Kubernetes and of a vault are missing here: a demo has neither.
const PROMISED: [&str; 57] = [
    "krane_build_info",
    "krane_actor_up",
    "krane_actor_restarts_total",
    "krane_actor_parked",
    "krane_actor_mailbox_depth",
    "krane_actor_mailbox_high_water",
    "krane_actor_mailbox_capacity",
    "krane_actor_message_wait_seconds",
    "krane_actor_handle_seconds",
    "krane_actor_panics_total",
    "krane_stream_cursor",
    "krane_stream_lag_versions",
    "krane_stream_connected",
    "krane_quarantined",
    "krane_drift_detected_total",
    "krane_drift_repaired_total",
    "krane_apply_writes_total",
    "krane_apply_skipped_total",
    "krane_lease_held",
    "krane_report_lag_seconds",
    "krane_reports_total",
    "krane_report_backlog",
    "krane_breaker_state",
    "krane_control_plane_requests_total",
    "krane_replayed_states_total",
    "krane_states_unknown_total",
    "krane_states_stale_total",
    "krane_states_adopted_total",
    "krane_states_oversize_total",
    "krane_deletes_held",
    "krane_objects_held",
    "krane_objects_outdated",
    "krane_objects_name_conflict",
    "krane_resync_duration_seconds",
    "krane_rpc_requests_total",
    "krane_rpc_duration_seconds",
    "krane_secrets_requests_total",
    "krane_secrets_breaker_state",
    "krane_stage_seconds",
    "krane_backlog",
    "krane_lanes",
    "krane_lane_panics_total",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "workqueue_retries_total",
];

/// A demo that runs, and the lines it has not been asked for yet.
pub(crate) struct Playing {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Playing {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_krane-demo"))
            .args(arguments)
            // Nothing of the machine may leak into it.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    fn line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }

    fn event(&mut self) -> Option<Value> {
        let line = self.line()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    fn end(mut self) -> (Vec<String>, ExitStatus) {
        let mut rest = Vec::new();
        while let Some(line) = self.line() {
            rest.push(line);
        }
        (rest, self.child.wait().unwrap())
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole answer to a request with this head, after its method and path.
fn ask(address: &str, request: &str, more: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path}"), "", "")
}

/// Who did what, without times.
fn deeds(events: &[Value]) -> Vec<(String, String, String)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .filter(|event| event["who"].is_string())
        .map(|event| {
            (
                text(event, "who"),
                text(event, "event"),
                text(event, "what"),
            )
        })
        .collect()
}

#[test]
fn a_demo_of_ten_seconds_ends_with_everything_in_place_and_reported() {
    let start = Instant::now();
    let mut playing = Playing::start(&["--seed", "7", "--for", "10s", "--json"]);
    let started = playing.event().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "links come late");
    assert_eq!(
        (&started["event"], &started["seed"]),
        (&"started".into(), &7.into())
    );
    assert!(
        started["page"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );

    let first: Vec<_> = (0..2).map(|_| playing.event().unwrap()).collect();
    assert_eq!(first[1]["event"], "made", "{first:?}");
    let metrics = started["metrics"].as_str().unwrap();
    let address = metrics
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let text = get(address, "/metrics");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for family in PROMISED {
        assert!(text.contains(&format!("# HELP {family} ")), "{family}");
    }

    let (rest, status) = playing.end();
    let events: Vec<Value> = rest
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = events.last().unwrap();
    assert_eq!(status.code(), Some(0), "{summary}");
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["ok"], true, "{summary}");
    let number = |field: &str| summary[field].as_u64().unwrap_or_else(|| panic!("{field}"));
    assert!(number("states_applied") >= 5, "{summary}");
    let score = |things: &str, what: &str| {
        let score = summary[things][what].as_u64();
        score.unwrap_or_else(|| panic!("{things} {what}"))
    };
    for (things, least) in [("apps", 3), ("sentinels", 1), ("policies", 6)] {
        let wanted = score(things, "wanted");
        assert!(wanted >= least, "{things}: {summary}");
        assert_eq!(score(things, "in_place"), wanted, "{things}");
        assert_eq!(score(things, "reported"), wanted, "{things}");
    }
    let reported = score("apps", "wanted") + score("sentinels", "wanted");
    assert!(number("reports_delivered") >= reported, "{summary}");
    assert_eq!(number("quarantined"), 0, "{summary}");
    let told = deeds(&events);
    let happened = |event: &str| told.iter().any(|(_, happened, _)| happened == event);
    assert!(happened("undone") && happened("set_aside"), "{told:?}");
    assert!(!happened("late"), "{told:?}");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let told = |seed: &str| {
        let (lines, status) = Playing::start(&["--seed", seed, "--for", "4s", "--json"]).end();
        assert_eq!(status.code(), Some(0), "seed {seed}: {lines:?}");
        let events: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        deeds(&events)
    };
    let (one, two, other) = (told("3"), told("3"), told("4"));
    // A slower run gets less far.
    let both = one.len().min(two.len());
    assert!(both >= 3, "{one:?}\n{two:?}");
    assert_eq!(one[..both], two[..both]);
    assert_ne!(one[0], other[0]);
}

#[test]
fn ctrl_c_ends_it_at_once_and_cleanly() {
    let mut playing = Playing::start(&["--seed", "1"]);
    let mut shown = String::new();
    while !shown.contains("running") {
        shown += &playing.line().expect("the story goes on");
    }
    assert!(
        !shown.contains('\x1b'),
        "colours are for terminals: {shown:?}"
    );
    let asked = Instant::now();
    let pid = rustix::process::Pid::from_child(&playing.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (_, status) = playing.end();
    assert_eq!(status.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(3),
        "took {:?}",
        asked.elapsed()
    );
}

/// Where the page of a demo is, once its first apps run.
pub(crate) fn page_of(playing: &mut Playing) -> String {
    let started = playing.event().unwrap();
    let page = started["page"].as_str().unwrap();
    let address = page.trim_start_matches("http://").trim_end_matches('/');
    while playing.event().unwrap()["event"] != "reports" {}
    address.to_owned()
}

/// The answer to a button of the page, once it is told what came of it.
fn press(address: &str, button: &str) -> String {
    submit(address, button, "Accept: text/plain\r\n")
}

/// The answer to a button of the page, with more lines in the request's head.
fn submit(address: &str, button: &str, more: &str) -> String {
    let page = get(address, "/");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let (_, token) = page
        .split_once("name=\"form_token\" value=\"")
        .expect("a form");
    let (token, _) = token.split_once('"').unwrap();
    let more = format!(
        "Origin: http://{address}\r\n{more}Content-Type: application/x-www-form-urlencoded\r\n"
    );
    let body = format!("form_token={token}&{button}");
    ask(address, "POST /demo", &more, &body)
}

#[test]
fn a_button_of_the_page_is_felt_and_told() {
    let mut playing = Playing::start(&["--seed", "2", "--json"]);
    let address = page_of(&mut playing);
    let answer = press(&address, "action=kill_actor&path=root");
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    let answer = press(&address, "action=kill_actor&path=root%2Fheartbeat");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for said in [
        "krane's actor root/heartbeat was killed",
        "krane starts it again",
    ] {
        assert!(answer.contains(said), "{answer}");
    }
    let told = loop {
        let event = playing.event().unwrap();
        if event["who"] == "you" {
            break event;
        }
    };
    assert_eq!(told["event"], "killed");
    assert_eq!(told["what"], "kill krane's actor root/heartbeat");
}

/// Nothing changes and nothing fails in a quiet cluster: all looks well, and is old.
#[test]
fn a_page_without_an_api_server_does_not_say_that_all_is_well() {
    let mut playing = Playing::start(&["--seed", "2", "--json"]);
    let address = page_of(&mut playing);
    let sentence = || {
        let health = get(&address, "/api/v1/health");
        let (_, body) = health.split_once("\r\n\r\n").expect("an answer");
        let health: Value = serde_json::from_str(body).unwrap();
        health["sentence"].as_str().unwrap().to_owned()
    };
    let away = "The Kubernetes API does not answer";
    submit(&address, "action=freeze_control_plane", "");
    submit(&address, "action=take_api_server_away", "");
    let asked = Instant::now();
    while sentence().contains("in place") {
        assert!(asked.elapsed() < Duration::from_secs(3), "{}", sentence());
        std::thread::sleep(Duration::from_millis(50));
    }
    while !sentence().starts_with(away) {
        assert!(
            asked.elapsed() < Duration::from_secs(20),
            "{} after {:?}",
            sentence(),
            asked.elapsed()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let answer = press(&address, "action=restore");
    assert!(answer.contains("has everything in place"), "{answer}");
    assert!(!sentence().starts_with(away));
}

#[test]
fn a_wrong_length_is_a_usage_error() {
    let (_, status) = Playing::start(&["--for", "soon"]).end();
    assert_eq!(status.code(), Some(2));
}

/// Its apps are counted like those of the story, and it changes them while that is told.
#[test]
fn a_crowd_is_in_place_and_reported_in_the_end() {
    let playing = Playing::start(&["--json", "--for", "3s", "--apps", "60", "--changes", "20"]);
    let (lines, status) = playing.end();
    assert_eq!(status.code(), Some(0));
    let summary: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let count = |what: &str| summary["apps"][what].as_u64().unwrap();
    assert!(count("wanted") >= 60, "{summary}");
    assert_eq!(count("wanted"), count("reported"), "{summary}");
    assert!(
        summary["states_sent"].as_u64().unwrap() > count("wanted"),
        "nothing changed: {summary}"
    );
}

#[test]
fn changes_need_somebody_who_changes() {
    for wrong in [
        &["--changes", "5"][..],
        &["--apps", "10001"],
        &["--apps", "0", "--changes", "5"],
        &["--apps", "1", "--changes", "1001"],
    ] {
        let (_, status) = Playing::start(wrong).end();
        assert_eq!(status.code(), Some(2), "{wrong:?}");
    }
}

/// What a refused demo tells, and its exit code.
fn refused(arguments: &[&str], env: &[(&str, &str)]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_krane-demo"))
        .args(["--json", "--for", "1s"])
        .args(arguments)
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    (told, output.status.code())
}

#[test]
fn a_token_that_nobody_can_send_is_refused_and_not_repeated() {
    for (token, reason) in [
        ("", "is empty"),
        ("geheimnisvoll\u{fc}", "HTTP header"),
        ("geheimnisvoll\n", "HTTP header"),
    ] {
        let (told, code) = refused(&["--token", token], &[]);
        assert_eq!(code, Some(2), "{told}");
        assert!(
            told.contains("--token") && told.contains(reason),
            "{reason}: {told}"
        );
        assert!(!told.contains("geheimnisvoll"), "{told}");
    }
}

#[test]
fn a_wrong_variable_is_named_with_what_is_wrong() {
    let name = "KRANE__OBSERVABILITY__TRACING__ENDPOINT";
    let (told, code) = refused(&[], &[(name, "no address")]);
    assert_eq!(code, Some(78), "{told}");
    for words in [name, "observability.tracing.endpoint must start with"] {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
}

/// Its page asks for it, and with it krane's own verbs act; a wrong one is told from none.
#[test]
fn with_a_token_the_verbs_act_in_a_demo() {
    let mut playing = Playing::start(&["--json", "--token", "secret"]);
    let address = page_of(&mut playing);
    assert!(get(&address, "/").starts_with("HTTP/1.1 401"));
    let folder = tempfile::tempdir().unwrap();
    let verb = |arguments: &[&str], token: &str| {
        let file = folder.path().join(token);
        std::fs::write(&file, token).unwrap();
        let output = Command::new(crate::krane())
            .args(arguments)
            .args(["--admin", &address, "--token-file"])
            .arg(file)
            .env_clear()
            .output()
            .unwrap();
        let told = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(told).unwrap())
    };
    let (code, told) = verb(&["writes", "off"], "another");
    assert_eq!(code, Some(77), "{told}");
    assert!(
        told.contains("does not take the token of") && told.contains("another"),
        "{told}"
    );
    let (code, told) = verb(&["writes", "off"], "secret");
    assert_eq!(code, Some(0), "{told}");
    let (_, told) = verb(&["status"], "secret");
    for words in ["A person switched writes off", "since", "krane writes on"] {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
    assert!(!told.contains("safety.writes"), "{told}");
}
