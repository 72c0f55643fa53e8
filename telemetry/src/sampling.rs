//! Leaves out a share of the lines about successes; a failure is never left out.

use std::fmt;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

use krane_settings::Logging;

/// Decides when an operation has ended, because only then is it known to be slow or failed.
pub(super) struct TailSampler {
    rate: f64,
    slow_threshold: Duration,
}

impl TailSampler {
    pub(super) fn new(logging: &Logging) -> Self {
        Self {
            rate: logging.sample_rate,
            slow_threshold: logging.slow_threshold,
        }
    }

    fn keeps(&self, outcome: &Outcome) -> bool {
        let Some(duration) = outcome.duration else {
            return true;
        };
        outcome.failed || duration >= self.slow_threshold || drawn() < self.rate
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "which lines are left out decides nothing"
)]
fn drawn() -> f64 {
    fastrand::f64()
}

impl<S> Filter<S> for TailSampler {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        if self.rate >= 1.0 || *event.metadata().level() <= Level::WARN {
            return true;
        }
        let mut outcome = Outcome::default();
        event.record(&mut outcome);
        self.keeps(&outcome)
    }
}

/// What an event says about the end of an operation.
#[derive(Default)]
struct Outcome {
    duration: Option<Duration>,
    failed: bool,
}

impl Outcome {
    fn note(&mut self, field: &Field, millis: Option<u64>) {
        match field.name() {
            "duration_ms" => self.duration = millis.map(Duration::from_millis),
            "error" => self.failed = true,
            _ => {}
        }
    }
}

impl Visit for Outcome {
    fn record_debug(&mut self, field: &Field, _: &dyn fmt::Debug) {
        self.note(field, None);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, Some(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, Some(value.try_into().unwrap_or_default()));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.note(field, Some(value.try_into().unwrap_or(u64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        self.note(field, Some(value as u64));
    }
}
