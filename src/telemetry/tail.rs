//! The last log lines, kept for those who look where the log itself is not at hand.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use anstream::adapter::strip_str;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::line::Fields;

/// Lines that are kept.
const LINES: usize = 1_000;
/// Bytes of a line that are kept.
const LONGEST: usize = 2_048;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Counted from 1 since the process began; what is missing in between was forgotten.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// How serious it is.
    pub level: Level,
    /// Which part of krane wrote it.
    pub target: &'static str,
    /// What it says, then its fields and those of the spans around it.
    pub text: String,
}

/// The last lines of the log, exactly those that are written. Cheap to clone; all clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<LogLine>,
    written: u64,
}

impl LogTail {
    /// The lines later than this number, newest first.
    #[must_use]
    pub fn after(&self, number: u64) -> Vec<LogLine> {
        let kept = self.0.lock();
        let newest = kept.lines.iter().rev();
        newest
            .take_while(|line| line.number > number)
            .cloned()
            .collect()
    }

    /// Keeps a line, and forgets the oldest when there are too many.
    pub fn keep(&self, at: Timestamp, level: Level, target: &'static str, mut text: String) {
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
        let mut kept = self.0.lock();
        kept.written += 1;
        let number = kept.written;
        if kept.lines.len() == LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(LogLine {
            number,
            at,
            level,
            target,
            text,
        });
    }
}

/// Writes lines as the form within does, and keeps them.
pub(super) struct Keeping<F> {
    pub(super) form: F,
    pub(super) tail: LogTail,
}

impl<S, N, F> FormatEvent<S, N> for Keeping<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut text = fields.message;
        for (name, value) in &fields.named {
            say(&mut text, name, value);
        }
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let Some(formatted) = extensions.get::<FormattedFields<N>>() else {
                continue;
            };
            // Each form of a line has its own form of the fields of a span.
            match serde_json::from_str::<Map<String, Value>>(formatted) {
                Ok(named) => named
                    .iter()
                    .for_each(|(name, value)| say(&mut text, name, value)),
                Err(_) if formatted.is_empty() => {}
                Err(_) => {
                    text.push(' ');
                    text.push_str(&strip_str(formatted).to_string());
                }
            }
        }
        let metadata = event.metadata();
        self.tail
            .keep(Timestamp::now(), *metadata.level(), metadata.target(), text);
        self.form.format_event(context, writer, event)
    }
}

fn say(text: &mut String, name: &str, value: &Value) {
    let _ = match value.as_str() {
        Some(value) => write!(text, " {name}={value}"),
        None => write!(text, " {name}={value}"),
    };
}
