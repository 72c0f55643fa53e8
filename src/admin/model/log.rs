//! The log lines that are still known.

use serde::Serialize;

use super::{Filter, Level, Sources, Stamp};
use crate::telemetry::LogLine;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogView {
    /// Counted from 1 since the process began; what is missing in between was forgotten.
    pub number: u64,
    /// When it was written.
    pub at: Stamp,
    /// How bad what it says is.
    pub level: Level,
    /// Which part of krane wrote it.
    pub target: &'static str,
    /// What it says, with its fields.
    pub text: String,
}

impl From<LogLine> for LogView {
    fn from(line: LogLine) -> Self {
        let level = match line.level {
            tracing::Level::ERROR => Level::Bad,
            tracing::Level::WARN => Level::Warn,
            _ => Level::Good,
        };
        Self {
            number: line.number,
            at: line.at.into(),
            level,
            target: line.target,
            text: line.text,
        }
    }
}

impl Sources {
    /// The newest lines later than `after` that have all words of the filter, newest first.
    #[must_use]
    pub fn log(&self, filter: &str, after: u64, limit: usize) -> Vec<LogView> {
        let filter = Filter::new(filter);
        let lines = self.log.after(after).into_iter();
        lines
            .filter(|line| filter.is_in(&format!("{} {} {}", line.level, line.target, line.text)))
            .take(limit)
            .map(LogView::from)
            .collect()
    }
}
