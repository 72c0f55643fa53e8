//! The two forms of a log line; both say which process in which region speaks.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use krane_domain::words::chain;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

use krane_settings::Settings;

/// Who speaks, on every line.
pub(super) struct Sender {
    instance_id: String,
    region: String,
}

impl Sender {
    pub(super) fn of(settings: &Settings) -> Self {
        let instance_id = settings.instance_id.clone();
        Self {
            instance_id,
            region: settings.region.name.clone(),
        }
    }
}

/// One JSON object per line.
///
/// Fields of the enclosing spans are merged into it, the innermost wins, the event's own last.
pub(super) struct JsonLines {
    sender: Arc<Sender>,
}

impl JsonLines {
    pub(super) fn new(sender: Arc<Sender>) -> Self {
        Self { sender }
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        let mut span_name = None;
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            span_name = Some(span.name());
            if let Some(formatted) = span.extensions().get::<FormattedFields<N>>() {
                let own: BTreeMap<String, Value> =
                    serde_json::from_str(formatted).unwrap_or_default();
                fields.named.extend(own);
            }
        }
        event.record(&mut fields);

        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        let text = |text: &str| Value::from(text);
        let mut line = Line::new(&mut writer);
        line.field("timestamp", &text(&time))?;
        line.field("level", &text(metadata.level().as_str()))?;
        line.field("target", &text(metadata.target()))?;
        line.field("message", &text(&fields.message))?;
        line.field("instance.id", &text(&self.sender.instance_id))?;
        line.field("region", &text(&self.sender.region))?;
        if let Some(name) = span_name {
            line.field("span", &text(name))?;
        }
        for (name, value) in &fields.named {
            // A field must not pass for what the line itself says.
            match name.as_str() {
                "timestamp" | "level" | "target" | "message" | "instance.id" | "region"
                | "span" => line.field(&format!("field.{name}"), value)?,
                _ => line.field(name, value)?,
            }
        }
        line.end()
    }
}

/// Writes one JSON object field by field, so that the important ones come first.
struct Line<'a, 'w> {
    writer: &'a mut Writer<'w>,
    separator: char,
}

impl<'a, 'w> Line<'a, 'w> {
    fn new(writer: &'a mut Writer<'w>) -> Self {
        Self {
            writer,
            separator: '{',
        }
    }

    fn field(&mut self, name: &str, value: &Value) -> fmt::Result {
        write!(
            self.writer,
            "{}{}:{value}",
            self.separator,
            Value::from(name)
        )?;
        self.separator = ',';
        Ok(())
    }

    fn end(self) -> fmt::Result {
        writeln!(self.writer, "}}")
    }
}

/// The fields of one event.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) named: BTreeMap<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        self.named.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.set(field, format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.set(field, value.into());
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_error(&mut self, field: &Field, error: &(dyn Error + 'static)) {
        self.set(field, chain(error).into());
    }
}

/// A line for people.
pub(super) struct PrettyLines {
    sender: Arc<Sender>,
    plain: Format<Full, SystemTime>,
    coloured: Format<Full, SystemTime>,
}

impl PrettyLines {
    pub(super) fn new(sender: Arc<Sender>) -> Self {
        let plain = Format::default().with_ansi(false);
        Self {
            sender,
            plain,
            coloured: Format::default().with_ansi(true),
        }
    }
}

impl<S, N> FormatEvent<S, N> for PrettyLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let coloured = writer.has_ansi_escapes();
        let format = if coloured {
            &self.coloured
        } else {
            &self.plain
        };
        let (dim, reset) = if coloured {
            ("\x1b[2m", "\x1b[0m")
        } else {
            ("", "")
        };
        let mut line = String::new();
        format.format_event(context, Writer::new(&mut line), event)?;
        let Sender {
            instance_id,
            region,
        } = &*self.sender;
        let line = line.trim_end();
        writeln!(
            writer,
            "{line} {dim}instance.id={instance_id} region={region}{reset}"
        )
    }
}
