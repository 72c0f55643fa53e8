//! The log lines that are still known.

use krane_telemetry::LogLine;
use serde::Serialize;

use super::{Filter, Level, Sources, Stamp};

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogView {
    /// Counted from 1 since the process began; what is missing in between was forgotten.
    pub number: u64,
    /// When it was written.
    pub at: Stamp,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: &'static str,
    /// Which part of krane wrote it.
    pub target: &'static str,
    /// What it says.
    pub text: String,
    /// Its fields and those of the spans around it, `name=value` each.
    pub fields: String,
}

impl LogView {
    fn of(line: &LogLine) -> Self {
        Self {
            number: line.number,
            at: line.at.into(),
            level: name(line.level),
            target: line.target,
            text: line.text.clone(),
            fields: line.fields.clone(),
        }
    }

    /// How bad what it says is.
    pub(crate) fn mark(&self) -> Level {
        match self.level {
            "error" => Level::Bad,
            "warn" => Level::Warn,
            _ => Level::Good,
        }
    }
}

const fn name(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        tracing::Level::DEBUG => "debug",
        tracing::Level::TRACE => "trace",
    }
}

impl Sources {
    /// The newest lines later than `after` that have all words of the filter, newest first.
    #[must_use]
    pub fn log(&self, filter: &str, after: u64, limit: usize) -> Vec<LogView> {
        let filter = Filter::new(filter);
        let lines = self.log.after(after);
        lines
            .iter()
            .filter(|line| {
                let (level, target) = (name(line.level), line.target);
                filter.is_in(&format!("{level} {target} {} {}", line.text, line.fields))
            })
            .take(limit)
            .map(|line| LogView::of(line))
            .collect()
    }
}
