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
    /// What it says.
    pub text: String,
    /// Its fields and those of the spans around it, `name=value` each.
    pub fields: String,
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
            fields: line.fields,
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
            .filter(|line| {
                let (level, target) = (line.level, line.target);
                filter.is_in(&format!("{level} {target} {} {}", line.text, line.fields))
            })
            .take(limit)
            .map(LogView::from)
            .collect()
    }
}
