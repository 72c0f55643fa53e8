//! What requests for secrets came to.

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use super::outcome::Outcome;

/// Counts outcomes, shared by clones.
#[derive(Clone, Debug)]
pub struct SecretsMetrics {
    requests: IntCounterVec,
    breakers: IntGaugeVec,
}

impl SecretsMetrics {
    /// Every series is there from the start.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                "krane_secrets_requests_total",
                "Requests of pods for their secrets, by how they ended.",
            ),
            &["result"],
        )?;
        let breakers = IntGaugeVec::new(
            Opts::new(
                "krane_secrets_breaker_state",
                "0 closed, 1 probing, 2 open.",
            ),
            &["dependency"],
        )?;
        for outcome in Outcome::all() {
            requests.with_label_values(&[outcome.name()]).reset();
        }
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(breakers.clone()))?;
        let metrics = Self { requests, breakers };
        metrics.breakers(0, 0);
        Ok(metrics)
    }

    pub(super) fn count(&self, outcome: Outcome) {
        self.requests.with_label_values(&[outcome.name()]).inc();
    }

    #[cfg(test)]
    pub(super) fn counted(&self, outcome: Outcome) -> u64 {
        self.requests.with_label_values(&[outcome.name()]).get()
    }

    pub(super) fn breakers(&self, cluster: i64, vault: i64) {
        let set = |name, value| self.breakers.with_label_values(&[name]).set(value);
        set("cluster", cluster);
        set("vault", vault);
    }
}
