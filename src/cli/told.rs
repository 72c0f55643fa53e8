//! What the running krane tells, as far as the command line shows it.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::exit;

/// A whole answer: what is shown, and the same as it was told, for `-o json`.
pub(super) struct Told<T> {
    pub(super) shown: T,
    pub(super) raw: Value,
}

#[derive(Deserialize)]
pub(super) struct Health {
    pub(super) taken_at: Timestamp,
    pub(super) identity: Identity,
    pub(super) level: String,
    pub(super) sentence: String,
    pub(super) problems: Vec<Problem>,
    pub(super) more: usize,
    pub(super) lease: Option<Lease>,
    #[serde(default)]
    pub(super) secrets: Option<Secrets>,
}

/// The clock of the krane that answers.
#[derive(Deserialize)]
pub(super) struct Taken {
    pub(super) taken_at: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct Identity {
    pub(super) instance: String,
    pub(super) region: String,
    pub(super) platform: String,
    pub(super) short_version: String,
}

#[derive(Deserialize)]
pub(super) struct Problem {
    pub(super) level: String,
    pub(super) what: String,
    pub(super) why: Option<String>,
    pub(super) remedy: String,
    pub(super) since: Option<Timestamp>,
    pub(super) next_try: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct Lease {
    pub(super) role: String,
    pub(super) since: Timestamp,
    pub(super) holder: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Secrets {
    pub(super) unproved_because: Option<String>,
    pub(super) unproved: u64,
}

#[derive(Deserialize)]
pub(super) struct Controllers {
    pub(super) controllers: Vec<Controller>,
}

#[derive(Deserialize)]
pub(super) struct Controller {
    pub(super) name: String,
    pub(super) cursor: u64,
    pub(super) newest: u64,
    pub(super) lag: u64,
    pub(super) queued: usize,
    #[serde(default)]
    pub(super) to_upgrade: usize,
    pub(super) in_flight: usize,
    pub(super) quarantined: usize,
    #[serde(default)]
    pub(super) on_hold: usize,
    pub(super) stream: Stream,
    pub(super) breaker: String,
    pub(super) has_reports: bool,
    pub(super) reports_undelivered: usize,
    pub(super) resync: Option<Resync>,
}

#[derive(Deserialize)]
pub(super) struct Stream {
    pub(super) connected: bool,
    pub(super) connected_since: Option<Timestamp>,
    pub(super) lost_at: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct Resync {
    pub(super) ended_at: Timestamp,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "as the API calls it")]
pub(super) struct Workloads {
    pub(super) taken_at: Timestamp,
    pub(super) total: usize,
    pub(super) matching: usize,
    pub(super) workloads: Vec<Workload>,
}

#[derive(Deserialize)]
pub(super) struct Workload {
    pub(super) controller: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) state: String,
    pub(super) level: String,
    pub(super) why: Option<String>,
    pub(super) remedy: Option<String>,
    pub(super) next_try: Option<Timestamp>,
    pub(super) replicas: Option<u32>,
    pub(super) ready: usize,
}

#[derive(Deserialize)]
pub(super) struct Tree {
    pub(super) taken_at: Timestamp,
    pub(super) actors: Vec<Actor>,
}

#[derive(Deserialize)]
pub(super) struct Actor {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) depth: usize,
    pub(super) strategy: Option<String>,
    pub(super) state: String,
    pub(super) level: String,
    pub(super) since: Timestamp,
    pub(super) starts_at: Option<Timestamp>,
    pub(super) restarts: u64,
    #[serde(default)]
    pub(super) watches_broken: usize,
    pub(super) mailbox: Option<Mailbox>,
    #[serde(default)]
    pub(super) trouble: Option<ActorError>,
    pub(super) last_error: Option<ActorError>,
}

#[derive(Deserialize)]
pub(super) struct Mailbox {
    pub(super) depth: usize,
    pub(super) capacity: usize,
}

#[derive(Deserialize)]
pub(super) struct ActorError {
    pub(super) at: Timestamp,
    pub(super) text: String,
}

#[derive(Deserialize)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) at: Timestamp,
    pub(super) level: String,
    pub(super) controller: Option<String>,
    pub(super) object: Option<String>,
    pub(super) actor: Option<String>,
    pub(super) version: Option<u64>,
    pub(super) text: String,
}

#[derive(Deserialize)]
pub(super) struct LogLine {
    pub(super) number: u64,
    pub(super) at: Timestamp,
    pub(super) level: String,
    pub(super) text: String,
    pub(super) fields: String,
}

/// Something with a number that only grows.
pub(super) trait Numbered {
    fn number(&self) -> u64;
}

impl Numbered for Event {
    fn number(&self) -> u64 {
        self.number
    }
}

impl Numbered for LogLine {
    fn number(&self) -> u64 {
        self.number
    }
}

/// Everything about one workload.
#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) taken_at: Timestamp,
    pub(super) workload: Workload,
    pub(super) blind_since: Option<Timestamp>,
    pub(super) verdict: String,
    pub(super) chain: Vec<ChainStep>,
    pub(super) objects: Vec<Part>,
    pub(super) differing: usize,
    pub(super) events: Vec<Event>,
    pub(super) commands: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct ChainStep {
    pub(super) step: String,
    pub(super) at: Option<Timestamp>,
    pub(super) level: String,
    pub(super) text: String,
    pub(super) next_try: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct Part {
    pub(super) object: String,
    pub(super) state: String,
    pub(super) level: String,
    pub(super) why: Option<String>,
    pub(super) hold_ends: Option<Timestamp>,
    pub(super) differences: Vec<Difference>,
    pub(super) foreign: Vec<Foreign>,
}

#[derive(Deserialize)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) wanted: Option<String>,
    pub(super) live: Option<String>,
    pub(super) owners: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Foreign {
    pub(super) manager: String,
    pub(super) paths: Vec<String>,
}

/// The present moment of krane, against which ages are told.
#[derive(Clone, Copy)]
pub(super) struct Now(pub(super) Timestamp);

impl Now {
    /// How long ago, in one unit.
    pub(super) fn ago(self, at: Timestamp) -> String {
        brief(self.0, at)
    }

    /// How long until then.
    pub(super) fn until(self, at: Timestamp) -> String {
        if at <= self.0 {
            "now".to_owned()
        } else {
            format!("in {}", brief(at, self.0))
        }
    }
}

fn brief(later: Timestamp, earlier: Timestamp) -> String {
    let passed = Duration::try_from(later.duration_since(earlier)).unwrap_or_default();
    krane_domain::words::brief(passed)
}

/// Whether a level is no reason to act.
pub(super) fn is_calm(level: &str) -> bool {
    matches!(level, "good" | "busy")
}

/// How a verb ends that found this.
pub(super) fn exit_code(is_calm: bool) -> ExitCode {
    ExitCode::from(if is_calm { exit::OK } else { exit::FINDINGS })
}

/// The mark of a level.
pub(super) fn mark(level: &str) -> &'static str {
    match level {
        "good" => "✔",
        "busy" => "…",
        "warn" => "‼",
        _ => "✗",
    }
}
