//! What reached the control plane, for those who judge a run.

use std::collections::BTreeMap;

use krane_domain::ids::ObjectKey;
use krane_domain::report::Report;
use krane_ports::Question;
use tokio::time::Instant;

/// Everything that reached it, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Streams, the present ones included.
    pub watches: Vec<Watched>,
    /// Questions, whatever the answer.
    pub questions: Vec<Asked>,
    /// Reports it took, also those whose answer was lost. Refused ones are not among them.
    pub reports: Vec<ToldReport>,
    /// Heartbeats it took.
    pub heartbeats: Vec<Instant>,
}

/// A desired-state stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// When it was asked for.
    pub at: Instant,
    /// The version it was to begin behind.
    pub cursor: u64,
    /// Code of its end, `canceled` when the client went away; nothing while it is open.
    pub ended: Option<&'static str>,
}

/// A question about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: Instant,
    /// The question.
    pub question: Question,
}

/// A report it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldReport {
    /// When.
    pub at: Instant,
    /// What it says.
    pub report: Report,
}

impl Told {
    /// The newest report about each object.
    pub fn newest(&self) -> BTreeMap<&ObjectKey, &Report> {
        let reports = self.reports.iter().map(|told| &told.report);
        reports.map(|report| (report.key(), report)).collect()
    }

    /// The newest report about an object.
    pub fn report(&self, key: &ObjectKey) -> Option<&Report> {
        let mut reports = self.reports.iter().rev().map(|told| &told.report);
        reports.find(|report| report.key() == key)
    }

    /// The cursors of all streams.
    pub fn cursors(&self) -> Vec<u64> {
        self.watches.iter().map(|watched| watched.cursor).collect()
    }

    /// How many streams are open.
    pub fn open_watches(&self) -> usize {
        let open = self
            .watches
            .iter()
            .filter(|watched| watched.ended.is_none());
        open.count()
    }

    pub(super) fn watching(&mut self, cursor: u64) -> usize {
        self.watches.push(Watched {
            at: Instant::now(),
            cursor,
            ended: None,
        });
        self.watches.len() - 1
    }

    /// Only the first end of a stream counts.
    pub(super) fn ended(&mut self, watch: usize, code: &'static str) {
        if let Some(watched) = self.watches.get_mut(watch) {
            watched.ended.get_or_insert(code);
        }
    }

    pub(super) fn asked(&mut self, question: &Question) {
        self.questions.push(Asked {
            at: Instant::now(),
            question: question.clone(),
        });
    }

    pub(super) fn reported(&mut self, report: &Report) {
        self.reports.push(ToldReport {
            at: Instant::now(),
            report: report.clone(),
        });
    }

    pub(super) fn beat(&mut self) {
        self.heartbeats.push(Instant::now());
    }
}
