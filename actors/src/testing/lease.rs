//! A Lease in memory, and each process's own way to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::lease::{Claim, Elector, Failure, Record, Timing};
use krane_ports::{LeaseFailure, Leases};
use parking_lot::Mutex;

use crate::lease::Leadership;
use crate::status::StatusBoard;

/// What happens to the requests of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseFault {
    /// They are refused.
    Refuse,
    /// They never arrive, and are never answered.
    Hang,
    /// Writes take effect, their answers are lost.
    LoseAnswers,
    /// They take this long each way.
    Slow(Duration),
}

#[derive(Default)]
struct World {
    record: Option<Record>,
    versions: u64,
    faults: BTreeMap<&'static str, LeaseFault>,
    requests: BTreeMap<&'static str, usize>,
}

/// The Lease.
#[derive(Clone, Default)]
pub(crate) struct FakeLease {
    world: Arc<Mutex<World>>,
}

/// One process's way to it.
struct Way {
    lease: FakeLease,
    name: &'static str,
}

impl FakeLease {
    pub(crate) fn way(&self, name: &'static str) -> Arc<dyn Leases> {
        let lease = self.clone();
        Arc::new(Way { lease, name })
    }

    pub(crate) fn fault(&self, name: &'static str, fault: Option<LeaseFault>) {
        let mut world = self.world.lock();
        match fault {
            Some(fault) => world.faults.insert(name, fault),
            None => world.faults.remove(name),
        };
    }

    pub(crate) fn holder(&self) -> Option<Arc<str>> {
        self.world.lock().record.as_ref()?.holder.clone()
    }

    pub(crate) fn requests(&self, name: &'static str) -> usize {
        let world = self.world.lock();
        world.requests.get(name).copied().unwrap_or_default()
    }

    /// The Lease as it is, with its version.
    pub(crate) fn backup(&self) -> Option<Record> {
        self.world.lock().record.clone()
    }

    /// The cluster is restored from a backup; versions count from there.
    pub(crate) fn restore(&self, record: Option<Record>) {
        let mut world = self.world.lock();
        let version = record.as_ref().map(|record| record.version.parse());
        world.versions = version.map_or(0, |version| version.expect("a version of this Lease"));
        world.record = record;
    }

    /// Somebody else changes something that is none of its spec.
    pub(crate) fn touch(&self) {
        let mut world = self.world.lock();
        world.versions += 1;
        let version = world.versions.to_string().into();
        if let Some(record) = &mut world.record {
            record.version = version;
        }
    }

    fn write(&self, version: Option<&str>, claim: &Claim) -> Result<Record, LeaseFailure> {
        let mut world = self.world.lock();
        let present = world.record.as_ref().map(|record| &*record.version);
        if present != version {
            return Err(failure(Failure::Conflict));
        }
        world.versions += 1;
        let record = Record {
            uid: "u".into(),
            version: world.versions.to_string().into(),
            holder: claim.holder.clone(),
            duration: Some(claim.duration),
            transitions: claim.transitions,
            acquired_at: None,
        };
        world.record = Some(record.clone());
        Ok(record)
    }
}

fn failure(kind: Failure) -> LeaseFailure {
    let text = "as the test wants it".to_owned();
    LeaseFailure { kind, text }
}

impl Way {
    /// What the request meets on its way, and whether its answer is lost.
    async fn go(&self) -> Result<Option<LeaseFault>, LeaseFailure> {
        let fault = {
            let mut world = self.lease.world.lock();
            *world.requests.entry(self.name).or_default() += 1;
            world.faults.get(self.name).copied()
        };
        match fault {
            Some(LeaseFault::Refuse) => return Err(failure(Failure::Unknown)),
            Some(LeaseFault::Hang) => std::future::pending().await,
            Some(LeaseFault::Slow(time)) => super::pass(time).await,
            Some(LeaseFault::LoseAnswers) | None => {}
        }
        Ok(fault)
    }

    async fn back(
        &self,
        fault: Option<LeaseFault>,
        result: Result<Record, LeaseFailure>,
    ) -> Result<Record, LeaseFailure> {
        match fault {
            Some(LeaseFault::LoseAnswers) => Err(failure(Failure::Unknown)),
            Some(LeaseFault::Slow(time)) => {
                super::pass(time).await;
                result
            }
            Some(LeaseFault::Refuse | LeaseFault::Hang) | None => result,
        }
    }
}

#[async_trait]
impl Leases for Way {
    async fn read(&self) -> Result<Option<Record>, LeaseFailure> {
        self.go().await?;
        Ok(self.lease.world.lock().record.clone())
    }

    async fn create(&self, claim: &Claim) -> Result<Record, LeaseFailure> {
        let fault = self.go().await?;
        let result = self.lease.write(None, claim);
        self.back(fault, result).await
    }

    async fn update(&self, version: &str, claim: &Claim) -> Result<Record, LeaseFailure> {
        let fault = self.go().await?;
        let result = self.lease.write(Some(version), claim);
        self.back(fault, result).await
    }
}

/// A right to write that the test prolongs, in one term.
#[derive(Clone)]
pub(crate) struct Office {
    board: StatusBoard,
    leadership: Leadership,
    elector: Arc<Mutex<(Elector, u32)>>,
}

impl Office {
    /// One that ends after `window`, unless it is renewed.
    pub(crate) fn of(window: Duration) -> Self {
        let board = StatusBoard::new();
        let timing = Timing {
            duration: window * 2,
            renew: window,
            retry: window / 4,
        };
        let mut elector = Elector::new("this".into(), timing);
        elector.read(None, board.now());
        let office = Self {
            leadership: Leadership::elected("this".into(), board.clone()),
            board,
            elector: Arc::new(Mutex::new((elector, 0))),
        };
        office.renew();
        office
    }

    /// The same term for another window.
    pub(crate) fn renew(&self) {
        let now = self.board.now();
        let (elector, version) = &mut *self.elector.lock();
        *version += 1;
        let record = Record {
            uid: "lease".into(),
            version: version.to_string().into(),
            holder: Some("this".into()),
            duration: None,
            transitions: 1,
            acquired_at: None,
        };
        elector.wrote(record, now, now);
        self.leadership.publish(elector, now);
    }

    pub(crate) fn board(&self) -> StatusBoard {
        self.board.clone()
    }

    pub(crate) fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }
}
