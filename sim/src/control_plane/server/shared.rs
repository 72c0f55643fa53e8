//! What the server's requests and the test share.

use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tonic::Code;

use super::{Asked, Kind, Method, Request, Seen, faults::Faults, store::Store};

/// Everything under one lock, and a counter that moves with every change.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) token: String,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    stores: Stores,
    pub(crate) faults: Faults,
    pub(crate) seen: Seen,
    pub(crate) cuts: Cuts,
    /// Requests that ever arrived.
    pub(crate) arrived: usize,
    /// How many of those that have ended are kept; all when there is no limit.
    pub(crate) kept: Option<usize>,
}

/// What it wants of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores {
    deployments: Store,
    sentinels: Store,
    policies: Store,
}

/// Streams opened before the newest cut of their kind end with its code.
#[derive(Debug, Default)]
pub(crate) struct Cuts([Option<(usize, Code)>; 3]);

impl Cuts {
    /// Ends the streams among the first `requests` requests.
    pub(crate) fn cut(&mut self, kind: Kind, requests: usize, code: Code) {
        self.0[index(kind)] = Some((requests, code));
    }

    pub(crate) fn of(&self, kind: Kind, request: usize) -> Option<Code> {
        self.0[index(kind)]
            .filter(|(before, _)| request < *before)
            .map(|(_, code)| code)
    }
}

fn index(kind: Kind) -> usize {
    match kind {
        Kind::Deployments => 0,
        Kind::Sentinels => 1,
        Kind::Policies => 2,
    }
}

impl Inner {
    pub(crate) fn store(&mut self, kind: Kind) -> &mut Store {
        match kind {
            Kind::Deployments => &mut self.stores.deployments,
            Kind::Sentinels => &mut self.stores.sentinels,
            Kind::Policies => &mut self.stores.policies,
        }
    }

    /// Forgets the oldest requests, once there are twice as many as are kept.
    fn forget(&mut self) {
        let Some(kept) = self.kept else { return };
        if self.seen.requests.len() > 2 * kept {
            let oldest = self.arrived.saturating_sub(kept);
            let requests = &mut self.seen.requests;
            requests.retain(|request| request.ended.is_none() || request.number >= oldest);
        }
    }

    pub(crate) fn stores(&self) -> Stores {
        self.stores.clone()
    }

    /// Goes on from this copy; streams that are open go on behind what they have sent.
    pub(crate) fn restore(&mut self, stores: Stores) {
        self.stores = stores;
    }
}

impl Shared {
    pub(crate) fn new(token: &str) -> Self {
        Self {
            token: token.to_owned(),
            inner: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.inner.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Writes a request down; it is being served from now on.
    pub(crate) fn arrived(&self, mut request: Request) -> usize {
        self.change(|inner| {
            request.number = inner.arrived;
            inner.arrived += 1;
            inner.seen.requests.push(request);
            inner.forget();
            inner.arrived - 1
        })
    }

    /// Writes down how a request ended; only the first time counts.
    pub(crate) fn ended(&self, number: usize, code: Code) {
        self.change(|inner| {
            let requests = &mut inner.seen.requests;
            let place = requests.binary_search_by_key(&number, |request| request.number);
            let Some(request) = place.ok().and_then(|place| requests.get_mut(place)) else {
                return;
            };
            if request.ended.is_some() {
                return;
            }
            request.ended = Some((code, Instant::now()));
            if let (Code::Ok, Asked::Report(report)) = (code, &request.asked) {
                let (at, report) = (request.at, report.clone());
                inner.seen.deliver(at, &report);
            }
        });
    }

    pub(crate) fn fault(&self, method: Method) -> Option<Code> {
        self.look().faults.take(method)
    }
}
