//! A Lease, as the API server keeps it.

use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::lease::{Claim, Failure, Record};
use krane_ports::{LeaseFailure, Leases};
use parking_lot::Mutex;

use super::clock::Clock;

/// The one Lease that processes of krane share. Clones are the same one.
#[derive(Clone, Debug)]
pub struct SimLeases {
    state: Arc<Mutex<State>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    record: Option<Record>,
    versions: u64,
}

impl Default for SimLeases {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            clock: Clock::new(),
        }
    }
}

impl SimLeases {
    /// The Lease as it is.
    pub fn record(&self) -> Option<Record> {
        self.state.lock().record.clone()
    }

    fn write(
        &self,
        claim: &Claim,
        may: impl FnOnce(Option<&Record>) -> bool,
    ) -> Result<Record, LeaseFailure> {
        let mut state = self.state.lock();
        if !may(state.record.as_ref()) {
            return Err(LeaseFailure {
                kind: Failure::Conflict,
                text: "it is there already, or it is another version".to_owned(),
            });
        }
        state.versions += 1;
        let before = state.record.take();
        // What a renewal does not say stays as it was.
        let kept = before.as_ref().and_then(|record| record.acquired_at);
        let now = self.clock.unix_seconds();
        let record = Record {
            uid: before.map_or_else(|| "lease-1".into(), |record| record.uid),
            version: state.versions.to_string().into(),
            holder: claim.holder.clone(),
            duration: Some(claim.duration),
            transitions: claim.transitions,
            acquired_at: if claim.is_new { Some(now) } else { kept },
        };
        state.record = Some(record.clone());
        Ok(record)
    }
}

#[async_trait]
impl Leases for SimLeases {
    async fn read(&self) -> Result<Option<Record>, LeaseFailure> {
        Ok(self.record())
    }

    async fn create(&self, claim: &Claim) -> Result<Record, LeaseFailure> {
        self.write(claim, |record| record.is_none())
    }

    async fn update(&self, version: &str, claim: &Claim) -> Result<Record, LeaseFailure> {
        self.write(claim, |record| {
            record.is_some_and(|record| *record.version == *version)
        })
    }
}
