//! Who may use what at the same time: all tests of a binary share two cores and one cluster.

use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// krane acts on every namespace, so two of them must not meet in one cluster.
static SHARED_CLUSTER: Mutex<()> = Mutex::const_new(());
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Whether a test minds others running beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// It compares times: nobody else runs.
    Alone,
    /// It does not.
    Beside,
}

/// Held by a world for as long as it lives.
#[derive(Debug)]
pub(crate) struct Permit {
    _cluster: Option<MutexGuard<'static, ()>>,
    _machine: Machine,
}

#[derive(Debug)]
enum Machine {
    Beside(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl Permit {
    pub(crate) async fn take(shared_cluster: bool, quiet: Quiet) -> Self {
        let cluster = if shared_cluster {
            Some(SHARED_CLUSTER.lock().await)
        } else {
            None
        };
        let machine = match quiet {
            Quiet::Alone => Machine::Alone(MACHINE.write().await),
            Quiet::Beside => Machine::Beside(MACHINE.read().await),
        };
        Self {
            _cluster: cluster,
            _machine: machine,
        }
    }
}
