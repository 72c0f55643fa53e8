//! What the ports of all incarnations, the driver and the judges of one run share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::labels;
use krane_sim::cluster::{Admin, SimCluster};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::control_plane::memory::Backup;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::kinds::index;
use crate::ledger::Ledger;
use crate::plan::{ACTORS, CallFault, EventFault, Fault, MessageFault, Plan};

/// One run, as its parts see it.
pub(crate) struct Shared {
    pub(crate) cluster: SimCluster,
    pub(crate) admin: Admin,
    /// One for each controller, in the order of [`Controller::ALL`].
    pub(crate) controls: [SimControlPlane; 3],
    /// Whose calls, events and messages faults are about.
    about: BTreeSet<Controller>,
    pub(crate) rules: Rules,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) is_cluster_away: AtomicBool,
    /// The process of the present epoch has died.
    pub(crate) crashed: Notify,
    /// Something does not hold.
    pub(crate) violated: Notify,
    /// Requests that arrive after their sender gave up.
    pub(crate) late: Mutex<JoinSet<()>>,
    cluster_calls: Numbered<CallFault>,
    control_calls: Numbered<CallFault>,
    events: Numbered<EventFault>,
    messages: Numbered<MessageFault>,
}

struct Numbered<F> {
    faults: BTreeMap<u64, F>,
    next: AtomicU64,
}

impl<F: Copy> Numbered<F> {
    fn new(faults: impl Iterator<Item = (u64, F)>) -> Self {
        Self {
            faults: faults.collect(),
            next: AtomicU64::new(0),
        }
    }

    fn next(&self) -> Option<F> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.faults.get(&number).copied()
    }

    fn count(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// How many calls, events and messages a run had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Calls to the cluster.
    pub cluster: u64,
    /// Calls to the control plane.
    pub control: u64,
    /// Events of cluster watches.
    pub events: u64,
    /// Messages of desired-state streams.
    pub messages: u64,
    /// Messages that the actors of [`ACTORS`] met with in the first process, to the very end.
    pub actors: [u32; ACTORS.len()],
}

impl Shared {
    pub(crate) fn new(
        cluster: SimCluster,
        controls: [SimControlPlane; 3],
        about: &[Controller],
        plan: &Plan,
        is_loud: bool,
    ) -> Self {
        let faults = || plan.faults.iter().copied();
        Self {
            admin: cluster.admin(),
            cluster,
            controls,
            about: about.iter().copied().collect(),
            rules: Rules::default(),
            ledger: Mutex::new(Ledger::new(is_loud)),
            is_cluster_away: AtomicBool::new(false),
            crashed: Notify::new(),
            violated: Notify::new(),
            late: Mutex::default(),
            cluster_calls: Numbered::new(faults().filter_map(|fault| match fault {
                Fault::Cluster(number, what) => Some((number, what)),
                _ => None,
            })),
            control_calls: Numbered::new(faults().filter_map(|fault| match fault {
                Fault::Control(number, what) => Some((number, what)),
                _ => None,
            })),
            events: Numbered::new(faults().filter_map(|fault| match fault {
                Fault::Event(number, what) => Some((number, what)),
                _ => None,
            })),
            messages: Numbered::new(faults().filter_map(|fault| match fault {
                Fault::Message(number, what) => Some((number, what)),
                _ => None,
            })),
        }
    }

    /// Puts the Secret that the pods of sentinels cannot do without.
    pub(crate) fn put_secret(&self) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "database", "namespace": labels::SENTINEL_NAMESPACE},
            "stringData": {"UNKEY_DATABASE_PRIMARY": "of-the-test"},
        });
        let _ = self.admin.create(secret, "terraform");
    }

    /// All control planes want again what they wanted when the copies were made.
    pub(crate) fn restore(&self, backup: &[Backup; 3]) {
        for (control, backup) in self.controls.iter().zip(backup) {
            control.restore(backup);
        }
    }

    /// What a controller is told what to do by.
    pub(crate) fn control(&self, controller: Controller) -> &SimControlPlane {
        &self.controls[index(controller)]
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent {
            cluster: self.cluster_calls.count(),
            control: self.control_calls.count(),
            events: self.events.count(),
            messages: self.messages.count(),
            actors: [0; ACTORS.len()],
        }
    }

    /// Does something with the ledger, and wakes the driver when it found a violation.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        let mut ledger = self.ledger.lock();
        let result = work(&mut ledger);
        if ledger.violation().is_some() {
            self.violated.notify_one();
        }
        result
    }

    fn struck<F: Copy>(&self, fault: Option<F>, wrap: impl Fn(F) -> Fault) -> Option<F> {
        let fault = fault?;
        self.with(|ledger| {
            if !ledger.is_chaos {
                return None;
            }
            let fault_of_plan = wrap(fault);
            ledger.count(fault_of_plan.kind());
            ledger.note(&format!("fault: {fault_of_plan:?}"));
            Some(fault)
        })
    }

    pub(crate) fn next_cluster_call(&self, controller: Controller) -> Option<CallFault> {
        if !self.about.contains(&controller) {
            return None;
        }
        let number = self.cluster_calls.count();
        self.struck(self.cluster_calls.next(), |f| Fault::Cluster(number, f))
    }

    pub(crate) fn next_control_call(&self, controller: Controller) -> Option<CallFault> {
        if !self.about.contains(&controller) {
            return None;
        }
        let number = self.control_calls.count();
        self.struck(self.control_calls.next(), |f| Fault::Control(number, f))
    }

    pub(crate) fn next_event(&self, controller: Controller) -> Option<EventFault> {
        if !self.about.contains(&controller) {
            return None;
        }
        let number = self.events.count();
        self.struck(self.events.next(), |f| Fault::Event(number, f))
    }

    pub(crate) fn next_message(&self, controller: Controller) -> Option<MessageFault> {
        if !self.about.contains(&controller) {
            return None;
        }
        let number = self.messages.count();
        self.struck(self.messages.next(), |f| Fault::Message(number, f))
    }
}

/// One life of the process.
#[derive(Clone)]
pub(crate) struct Epoch {
    pub(crate) shared: Arc<Shared>,
    is_over: Arc<AtomicBool>,
}

impl Epoch {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Self {
        shared.with(Ledger::begin_epoch);
        Self {
            shared: Arc::clone(shared),
            is_over: Arc::default(),
        }
    }

    /// The process dies here and now: nothing of it reaches the world any more.
    pub(crate) fn crash(&self) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.shared.with(|ledger| {
                ledger.count("crashes");
                ledger.note("the process dies");
                ledger.shown.clear();
            });
            self.shared.crashed.notify_one();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Goes on while the process lives, never when it is dead.
    pub(crate) async fn alive(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }
}
