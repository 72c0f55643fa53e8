//! Lines are written into memory here; the process keeps its own subscriber.

use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;

use futures::FutureExt;
use krane_settings::{FlagValue, LoadInput, Settings};
use krane_supervision::cause::Cause;
use parking_lot::Mutex;
use serde_json::Value;
use tracing_subscriber::Registry;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use super::{LogTail, lines};

mod level;
mod tail;
mod traces;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Memory {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn settings(changes: &[(&str, &str)]) -> Settings {
    let mut input = LoadInput::default();
    let required = [
        ("instance_id", "ins_test"),
        ("region", "us-east-1"),
        ("platform", "aws"),
        ("control.url", "http://control"),
    ];
    for (path, value) in required.iter().chain(changes) {
        if *path == "RUST_LOG" {
            input.env.insert((*path).to_owned(), (*value).to_owned());
            continue;
        }
        let (path, value) = ((*path).to_owned(), (*value).to_owned());
        input.flags.push(FlagValue {
            flag: "--set".to_owned(),
            path,
            value,
        });
    }
    input
        .env
        .insert("UNKEY_CONTROL_PLANE_BEARER".to_owned(), "bearer".to_owned());
    Settings::load(&input).unwrap()
}

/// What `speak` writes under these settings.
fn written(changes: &[(&str, &str)], terminal: bool, speak: impl FnOnce()) -> String {
    let memory = Memory::default();
    let (layer, _) = lines(
        &settings(changes),
        terminal,
        memory.clone(),
        &LogTail::default(),
    )
    .unwrap();
    tracing::subscriber::with_default(Registry::default().with(layer), speak);
    let bytes = memory.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

fn json(changes: &[(&str, &str)], speak: impl FnOnce()) -> Vec<Value> {
    let text = written(changes, false, speak);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_json_line_names_process_region_span_and_fields() {
    let lines = json(&[], || {
        let span = tracing::info_span!("apply", object = "ns/name", version = 7_u64);
        let _entered = span.enter();
        let error = io::Error::other("refused");
        tracing::warn!(
            version = 8_u64,
            level = "mine",
            error = &error as &dyn std::error::Error,
            "line \"one\"\nline two"
        );
    });
    let [line] = &lines[..] else {
        panic!("must be one line: {lines:?}");
    };
    for (name, expected) in [
        ("level", "WARN"),
        ("target", "krane_telemetry::tests"),
        ("message", "line \"one\"\nline two"),
        ("instance.id", "ins_test"),
        ("region", "us-east-1"),
        ("span", "apply"),
        ("object", "ns/name"),
        ("field.level", "mine"),
        ("error", "refused"),
    ] {
        assert_eq!(line[name], expected, "{name} in {line}");
    }
    assert_eq!(line["version"], 8);
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_line_on_a_terminal_is_for_people_and_names_the_process() {
    let speak = || tracing::info!(objects = 3, "resync done");
    let pretty = written(&[], true, speak);
    assert!(
        pretty.contains("resync done") && pretty.contains('\x1b'),
        "{pretty}"
    );
    let plain = written(&[("observability.logging.format", "pretty")], false, speak);
    assert!(
        plain.ends_with("resync done objects=3 instance.id=ins_test region=us-east-1\n"),
        "{plain}"
    );
    assert!(written(&[("observability.logging.format", "json")], true, speak).starts_with('{'));
}

#[test]
fn the_level_holds_for_krane_and_other_crates_only_warn() {
    let messages = |changes: &[(&str, &str)]| -> Vec<String> {
        let lines = json(changes, || {
            tracing::debug!("ours debug");
            tracing::info!("ours info");
            tracing::info!(target: "h2", "other info");
            tracing::warn!(target: "h2", "other warn");
        });
        lines
            .iter()
            .map(|line| line["message"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(messages(&[]), ["ours info", "other warn"]);
    let level = "observability.logging.level";
    assert_eq!(
        messages(&[(level, "debug")]),
        ["ours debug", "ours info", "other warn"]
    );
    assert!(messages(&[(level, "error")]).is_empty());
    assert_eq!(
        messages(&[("RUST_LOG", "h2=info")]),
        ["other info", "other warn"]
    );
}

/// A token review that does not decode is logged by the client at WARN with its whole body.
#[test]
fn the_kubernetes_client_may_only_log_errors_whatever_rust_log_says() {
    let canary = "canary-of-a-token-review";
    for directives in ["trace", "kube_client=trace", "kube_client::client=trace"] {
        let text = written(&[("RUST_LOG", directives)], false, || {
            tracing::warn!(target: "kube_client::client", "{canary}");
            tracing::debug!(target: "kube_client", "{canary}");
            tracing::error!(target: "kube_client::client", "connection refused");
        });
        assert!(!text.contains(canary), "{text}");
        assert!(text.contains("connection refused"));
    }
}

#[test]
fn attempts_of_the_kubernetes_client_are_no_lines_unless_asked_for() {
    let speak = || tracing::error!(target: "kube_client::client", "connection refused");
    assert!(!written(&[], false, speak).contains("connection refused"));
    let asked = written(&[("RUST_LOG", "kube_client=error")], false, speak);
    assert!(asked.contains("connection refused"));
}

#[test]
fn successes_are_sampled_by_their_end_and_failures_never() {
    let speak = || {
        for _ in 0..400 {
            tracing::info!(duration_ms = 5_u64, "fast success");
        }
        tracing::info!(duration_ms = 1_000_u64, "slow success");
        tracing::info!(duration_ms = 5_u64, error = "refused", "told as a success");
        tracing::warn!(duration_ms = 5_u64, "failure");
        tracing::info!("a decision");
    };
    let rate = "observability.logging.sample_rate";
    let count = |rate_value: &str, message: &str| {
        let lines = json(&[(rate, rate_value)], speak);
        lines
            .iter()
            .filter(|line| line["message"] == message)
            .count()
    };
    assert_eq!(count("1", "fast success"), 400);
    assert_eq!(count("0", "fast success"), 0);
    let half = count("0.5", "fast success");
    assert!((100..300).contains(&half), "{half} of 400 at a rate of 0.5");
    for kept in ["slow success", "told as a success", "failure", "a decision"] {
        assert_eq!(count("0", kept), 1, "{kept}");
    }
}

/// What one of the ignored tests below writes in a process of its own.
fn child(name: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg(format!("tests::{name}"))
        .output()
        .unwrap();
    String::from_utf8([child.stdout, child.stderr].concat()).unwrap()
}

/// In a process of its own, because the hook is one for all threads.
#[test]
fn a_panic_is_told_by_its_place_and_never_by_its_text() {
    let output = child("child_that_panics");
    assert!(output.contains("the text is withheld"), "{output}");
    assert!(output.contains("telemetry/src/tests.rs:"), "{output}");
    assert!(output.contains("\"target\":\"krane::panic\""), "{output}");
    assert!(!output.contains("canary-in-a-panic"), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

/// In a process of its own, because the exporter speaks from a thread of its own.
#[test]
fn a_collector_that_cannot_be_reached_is_told() {
    let output = child("child_without_a_collector");
    let told = |line: &str| line.contains("opentelemetry") && line.contains("\"level\":\"ERROR\"");
    assert!(output.lines().any(told), "{output}");
}

#[test]
#[ignore = "a_collector_that_cannot_be_reached_is_told runs it in a process of its own"]
fn child_without_a_collector() {
    let settings = settings(&[
        ("observability.logging.format", "json"),
        ("observability.tracing.endpoint", "http://127.0.0.1:1"),
        ("observability.tracing.sample_rate", "1"),
    ]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let telemetry = super::init(&settings).unwrap();
        tracing::info_span!("span").in_scope(|| {});
        telemetry.shutdown().await;
    });
    runtime.shutdown_background();
}

#[test]
#[ignore = "a_panic_is_told_by_its_place_and_never_by_its_text runs it in a process of its own"]
fn child_that_panics() {
    let _telemetry = super::init(&settings(&[("observability.logging.format", "json")])).unwrap();
    let cause = std::thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            let panicked = std::panic::catch_unwind(|| panic!("canary-in-a-panic {}", 42));
            assert!(panicked.is_err());
            Cause::caught_panic().to_string()
        });
        panicking.join().unwrap()
    });
    assert!(cause.contains("telemetry/src/tests.rs:"), "{cause}");
}

/// Ends once its time is over, whatever the collector does, and blocks no thread of the runtime
/// until then. The clock is stopped: a busy machine changes nothing.
async fn ends_in_time(telemetry: super::Telemetry, collector: &str) {
    let mut end = std::pin::pin!(telemetry.shutdown());
    if end.as_mut().now_or_never().is_none() {
        tokio::time::advance(super::FLUSH_LIMIT).await;
        let is_over = end.now_or_never().is_some();
        assert!(is_over, "{collector} holds up the exit");
    }
}

/// open-telemetry/opentelemetry-rust#868, #2580, #3589 (B51): the flush ignores its timeout when
/// the collector accepts connections and never answers.
#[test]
fn a_collector_that_never_answers_holds_up_the_exit_for_two_seconds_at_most() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for endpoint in [silent.as_str(), "http://127.0.0.1:1"] {
        let settings = settings(&[
            ("observability.tracing.endpoint", endpoint),
            ("observability.tracing.sample_rate", "1"),
        ]);
        let runtime = with_a_stopped_clock();
        runtime.block_on(async {
            let tracing = settings.observability.tracing.as_ref().unwrap();
            let provider = super::traces::provider(tracing, &settings).unwrap();
            let tracer = opentelemetry::trace::TracerProvider::tracer(&provider, "test");
            for _ in 0..10 {
                drop(opentelemetry::trace::Tracer::start(&tracer, "span"));
            }
            let provider = Some(provider);
            ends_in_time(super::Telemetry { provider }, endpoint).await;
        });
        runtime.shutdown_background();
    }
}

fn with_a_stopped_clock() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}
