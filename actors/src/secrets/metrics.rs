//! What requests for secrets came to.

use krane_domain::secrets::Unproved;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use super::outcome::Outcome;

/// Counts outcomes, shared by clones.
#[derive(Clone, Debug)]
pub struct SecretsMetrics {
    requests: IntCounterVec,
    unproved: IntCounterVec,
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
        let unproved = IntCounterVec::new(
            Opts::new(
                "krane_secrets_unproved_total",
                "Pods that were given secrets although the desired states did not show whose they \
                 are, by why not.",
            ),
            &["reason"],
        )?;
        for why in Unproved::ALL {
            unproved.with_label_values(&[why.name()]).reset();
        }
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
        registry.register(Box::new(unproved.clone()))?;
        registry.register(Box::new(breakers.clone()))?;
        let metrics = Self {
            requests,
            unproved,
            breakers,
        };
        metrics.breakers(0, 0);
        Ok(metrics)
    }

    pub(super) fn count(&self, outcome: Outcome) {
        self.requests.with_label_values(&[outcome.name()]).inc();
    }

    pub(super) fn count_unproved(&self, why: Unproved) {
        self.unproved.with_label_values(&[why.name()]).inc();
    }

    pub(super) fn unproved_because(&self, why: Unproved) -> u64 {
        self.unproved.with_label_values(&[why.name()]).get()
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
