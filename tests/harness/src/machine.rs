//! Who may use what at the same time: all tests of a binary share two cores and one cluster.

use std::path::PathBuf;

use krane_testcluster::{Cluster, Options};
use tokio::sync::{
    Mutex, MutexGuard, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphorePermit,
};

use crate::{Failure, Outcome};

/// As many worlds may run side by side: they mostly wait, but each cluster takes 0.7 GiB and some CPU of two cores.
const CLUSTERS: usize = 5;

/// krane acts on every namespace, so two of them must not meet in one cluster: a world has one of these alone.
static POOL: [Pooled; CLUSTERS] = [const { Pooled::new() }; CLUSTERS];
static FREE: Semaphore = Semaphore::const_new(CLUSTERS);
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Whether a test minds others running beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// It compares times: nobody else runs.
    Alone,
    /// It does not.
    Beside,
}

struct Pooled {
    in_use: Mutex<()>,
    started: OnceCell<Shared>,
}

/// A cluster that worlds use one after the other. It ends with the process.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) kubeconfig: PathBuf,
}

impl Pooled {
    const fn new() -> Self {
        Self {
            in_use: Mutex::const_new(()),
            started: OnceCell::const_new(),
        }
    }
}

/// Held by a world for as long as it lives.
#[derive(Debug)]
pub(crate) struct Permit {
    // In this order: a place in the pool is free before it is offered.
    _cluster: Option<(MutexGuard<'static, ()>, SemaphorePermit<'static>)>,
    _machine: Machine,
}

#[derive(Debug)]
enum Machine {
    Beside(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl Permit {
    /// For a world with a cluster of its own.
    pub(crate) async fn without_cluster(quiet: Quiet) -> Self {
        Self {
            _cluster: None,
            _machine: Machine::take(quiet).await,
        }
    }

    /// For a world on a cluster of the pool. `prepare` installs what krane needs, once for each, and gives krane's
    /// kubeconfig.
    pub(crate) async fn with_cluster(
        quiet: Quiet,
        prepare: impl AsyncFnOnce(&Cluster) -> Outcome<PathBuf>,
    ) -> Outcome<(Self, &'static Shared)> {
        let free = FREE.acquire().await?;
        // Started ones first: who runs a single test waits for one cluster.
        let (pooled, in_use) = POOL
            .iter()
            .find_map(|pooled| Some((pooled, pooled.in_use.try_lock().ok()?)))
            .ok_or_else(|| Failure::new("the pool offered a cluster that is in use"))?;
        let machine = Machine::take(quiet).await;
        let start = async || {
            let cluster = Cluster::start(Options::default()).await?;
            let kubeconfig = prepare(&cluster).await?;
            Outcome::Ok(Shared {
                cluster,
                kubeconfig,
            })
        };
        let shared = pooled.started.get_or_try_init(start).await?;
        let permit = Self {
            _cluster: Some((in_use, free)),
            _machine: machine,
        };
        Ok((permit, shared))
    }
}

impl Machine {
    async fn take(quiet: Quiet) -> Self {
        match quiet {
            Quiet::Alone => Self::Alone(MACHINE.write().await),
            Quiet::Beside => Self::Beside(MACHINE.read().await),
        }
    }
}
