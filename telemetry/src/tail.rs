//! The last log lines, kept for those who look where the log itself is not at hand.

use std::collections::VecDeque;
use std::collections::btree_map::Entry;
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
use tracing_subscriber::registry::LookupSpan;

use super::line::Fields;

/// Lines that are kept.
const LINES: usize = 1_000;
/// Bytes of a line that are kept.
const LONGEST: usize = 2_048;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Counted from 1 since the process began, by the tail.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// How serious it is.
    pub level: Level,
    /// Which part of krane wrote it.
    pub target: &'static str,
    /// What it says.
    pub text: String,
    /// Its fields and those of the spans around it, `name=value` each.
    pub fields: String,
}

/// The last lines of the log, exactly those that are written. Cheap to clone; all clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<Arc<LogLine>>,
    written: u64,
}

impl LogTail {
    /// The lines later than this number, newest first.
    #[must_use]
    pub fn after(&self, number: u64) -> Vec<Arc<LogLine>> {
        let kept = self.0.lock();
        let newest = kept.lines.iter().rev();
        newest
            .take_while(|line| line.number > number)
            .cloned()
            .collect()
    }

    /// Keeps a line, cut to length, and forgets the oldest when there are too many.
    pub fn keep(&self, mut line: LogLine) {
        for text in [&mut line.text, &mut line.fields] {
            if text.len() > LONGEST {
                text.truncate(text.floor_char_boundary(LONGEST));
                text.push('…');
                text.shrink_to_fit();
            }
        }
        let mut kept = self.0.lock();
        kept.written += 1;
        line.number = kept.written;
        if kept.lines.len() == LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(Arc::new(line));
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
        let mut own = Fields::default();
        event.record(&mut own);
        let mut fields = String::new();
        for (name, value) in &own.named {
            say(&mut fields, name, value);
        }
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(formatted) = extensions.get::<FormattedFields<N>>() else {
                continue;
            };
            // Each form of a line has its own form of the fields of a span.
            let Ok(around) = serde_json::from_str::<Map<String, Value>>(formatted) else {
                if !formatted.is_empty() {
                    let _ = write!(fields, " {}", strip_str(formatted));
                }
                continue;
            };
            for (name, value) in around {
                if let Entry::Vacant(place) = own.named.entry(name) {
                    say(&mut fields, place.key(), &value);
                    place.insert(value);
                }
            }
        }
        let metadata = event.metadata();
        self.tail.keep(LogLine {
            number: 0,
            at: now(),
            level: *metadata.level(),
            target: metadata.target(),
            text: own.message,
            fields: fields.trim_start().to_owned(),
        });
        self.form.format_event(context, writer, event)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "lines tell the wall clock, here as where they are written"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

fn say(text: &mut String, name: &str, value: &Value) {
    let _ = match value.as_str() {
        Some(value) => write!(text, " {name}={value}"),
        None => write!(text, " {name}={value}"),
    };
}
