//! Log lines, traces, and what happens to a panic.
//!
//! A line at info or below with a `duration_ms` field tells of a finished operation that went
//! well. Of these only the share `observability.logging.sample_rate` is written, except that one
//! which took at least `slow_threshold` always is. Lines without `duration_ms`, lines with an
//! `error` field, warnings and errors are never sampled.

mod level;
mod line;
mod panics;
mod sampling;
mod tail;
mod traces;

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use krane_ports::Traces;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::task::JoinSet;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, FilterFn, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use krane_settings::{LogFormat, Logging, Settings};
pub use level::{LevelError, LevelHandle};
use line::{JsonLines, PrettyLines, Sender};
use sampling::TailSampler;
use tail::Keeping;
pub use tail::{LogLine, LogTail};

/// How long the last spans may take to leave when the process ends.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// Why logs or traces could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `RUST_LOG` is not a list of directives.
    #[error("RUST_LOG cannot be read")]
    Directives(#[source] tracing_subscriber::filter::ParseError),
    /// The exporter refused its settings.
    #[error("the trace exporter cannot be built, check observability.tracing.endpoint")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// Something else in this process has installed a subscriber.
    #[error("log lines already go somewhere else in this process")]
    Installed(#[source] tracing_subscriber::util::TryInitError),
}

/// What [`init`] set up, for the whole process as the subscriber itself is.
static INSTALLED: OnceLock<Installed> = OnceLock::new();

#[derive(Debug)]
struct Installed {
    level: LevelHandle,
    tail: LogTail,
    traces: Option<Arc<dyn Traces>>,
}

/// Changes the level of this process's log lines; nothing before [`init`].
pub fn level() -> Option<&'static LevelHandle> {
    INSTALLED.get().map(|installed| &installed.level)
}

/// The last lines of this process's log; none before [`init`].
pub fn tail() -> LogTail {
    let installed = INSTALLED.get();
    installed.map_or_else(LogTail::default, |installed| installed.tail.clone())
}

/// Where this process's traces go; nothing when they are off.
pub fn traces() -> Option<Arc<dyn Traces>> {
    INSTALLED.get()?.traces.clone()
}

/// Keeps the trace exporter; [`Telemetry::shutdown`] sends what is left.
#[derive(Debug)]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

/// Sends log lines to stderr and, when the section is present, spans to the collector; replaces
/// the panic hook. Call it once, inside the runtime.
pub fn init(settings: &Settings) -> Result<Telemetry, TelemetryError> {
    let terminal = std::io::stderr().is_terminal();
    let telemetry = install(settings, terminal, std::io::stderr)?;
    panics::install();
    Ok(telemetry)
}

/// Like [`init`], where nobody reads along: lines are kept and not written, and panics are told by
/// whatever tells them.
pub fn init_unread(settings: &Settings) -> Result<Telemetry, TelemetryError> {
    install(settings, false, std::io::sink)
}

fn install<W>(settings: &Settings, terminal: bool, writer: W) -> Result<Telemetry, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let provider = match &settings.observability.tracing {
        Some(tracing) => Some(traces::provider(tracing, settings)?),
        None => None,
    };
    let traces = match &provider {
        Some(provider) => {
            let layer = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("krane"))
                .with_threads(false)
                .with_location(false);
            Some(layer.with_filter(spans()?.and(without_bodies())))
        }
        None => None,
    };
    let tail = LogTail::default();
    let (lines, level) = lines(settings, terminal, writer, &tail)?;
    Registry::default()
        .with(lines)
        .with(traces)
        .try_init()
        .map_err(TelemetryError::Installed)?;
    INSTALLED.get_or_init(|| Installed {
        level,
        tail,
        traces: provider.as_ref().map(traces::of_states),
    });
    Ok(Telemetry { provider })
}

impl Telemetry {
    /// Sends the remaining spans; gives up after two seconds, whatever the collector does.
    ///
    /// The flush may go on in a blocking thread: end the runtime with `shutdown_background`.
    pub async fn shutdown(self) {
        let Some(provider) = self.provider else {
            return;
        };
        // The exporter blocks, and its own timeout does not cover a collector that never answers.
        let mut flush = JoinSet::new();
        flush.spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_LIMIT));
        match tokio::time::timeout(FLUSH_LIMIT, flush.join_next()).await {
            Ok(Some(Ok(Ok(())))) => {}
            Ok(_) => tracing::warn!("the last spans were lost, the collector refused them"),
            Err(_) => tracing::warn!("the last spans were lost, the collector did not answer"),
        }
    }
}

/// Which spans go to the collector, whatever the level of log lines is.
fn spans() -> Result<EnvFilter, TelemetryError> {
    parse("off,krane=info")
}

fn parse(directives: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::builder()
        .parse(directives)
        .map_err(TelemetryError::Directives)
}

fn directives(logging: &Logging) -> String {
    let level = logging.level.as_str();
    // Other crates tell how they work, not what krane decided.
    let others = if level == "error" { "error" } else { "warn" };
    // The Kubernetes client writes a line for each attempt while the API server is away; krane
    // says once that it is.
    let ours = format!("{others},kube_client=off,krane={level}");
    logging.directives.clone().unwrap_or(ours)
}

/// The Kubernetes client warns with whole response bodies, and a token review echoes the token.
fn without_bodies() -> FilterFn<impl Fn(&Metadata<'_>) -> bool + Clone> {
    filter_fn(|metadata| {
        let client = metadata.target().starts_with("kube_client");
        !client || *metadata.level() <= LevelFilter::ERROR
    })
}

/// The lines, and how their level is changed.
type Lines<S> = (Box<dyn Layer<S> + Send + Sync>, LevelHandle);

fn lines<S, W>(
    settings: &Settings,
    terminal: bool,
    writer: W,
    tail: &LogTail,
) -> Result<Lines<S>, TelemetryError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + 'static,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let logging = &settings.observability.logging;
    let sender = Arc::new(Sender::of(settings));
    let directives = directives(logging);
    let (level, handle) = reload::Layer::new(parse(&directives)?);
    let handle = LevelHandle::new::<S>(handle, &directives);
    let filter = level.and(without_bodies()).and(TailSampler::new(logging));
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(terminal)
        .with_writer(writer);
    let pretty = match logging.format {
        LogFormat::Auto => terminal,
        LogFormat::Json => false,
        LogFormat::Pretty => true,
    };
    let layer = if pretty {
        layer
            .event_format(Keeping {
                form: PrettyLines::new(sender),
                tail: tail.clone(),
            })
            .with_filter(filter)
            .boxed()
    } else {
        let fields = tracing_subscriber::fmt::format::JsonFields::new();
        let layer = layer
            .event_format(Keeping {
                form: JsonLines::new(sender),
                tail: tail.clone(),
            })
            .fmt_fields(fields);
        layer.with_filter(filter).boxed()
    };
    Ok((layer, handle))
}

#[cfg(test)]
mod tests;
