//! The supervision tree as data, in start order, with each policy beside the name it is for.
//!
//! Whoever wants to know what restarts with what reads [`TREE`]; [`assemble()`] makes a
//! specification of it for the supervisors, with the workers' start functions put in.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::Controller;

use crate::actor::Message;
use crate::address::Address;
use crate::status::{Facts, StatusBoard};
use crate::supervisor::{OnExhausted, Restart, Shutdown, Strategy};

mod assemble;
mod picture;
#[cfg(test)]
mod tests;

pub use assemble::{Crew, TreeError, assemble};
pub use picture::picture;

/// A place in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its name among its siblings; the last part of its path.
    pub name: &'static str,
    /// When it is started again.
    pub restart: Restart,
    /// What it is.
    pub kind: Kind,
}

/// What a place is for.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An actor that does the work.
    Worker(WorkerPolicy),
    /// A supervisor of others.
    Supervisor(SupervisorPolicy),
}

/// What holds for one worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPolicy {
    /// Messages from outside that may wait at once.
    pub mailbox: usize,
    /// How long a handler may run before the watchdog kills the worker.
    pub handler_limit: Duration,
    /// How it is stopped.
    pub shutdown: Shutdown,
}

/// What holds for one supervisor.
#[derive(Clone, Copy, Debug)]
pub struct SupervisorPolicy {
    /// Who is restarted with whom.
    pub strategy: Strategy,
    /// This many failures within the period are allowed.
    pub intensity: usize,
    /// The period.
    pub period: Duration,
    /// What happens after that.
    pub on_exhausted: OnExhausted,
    /// The controller that begins here. It is prepared before its children start, and reset
    /// after it was parked.
    pub controller: Option<Controller>,
    /// In start order.
    pub children: &'static [Node],
}

/// How long a worker may take to start: it only makes its state.
pub const START_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a killed actor may take to die.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long a controller may take to fetch what its children need. Each of its requests has a limit
/// of its own; slow lists of much take long together (D49).
pub const PREPARE_TIMEOUT: Duration = Duration::from_mins(30);

const MINUTE: Duration = Duration::from_mins(1);

/// Enough for a message that is being handled.
const SHORT: Duration = Duration::from_millis(150);

/// Enough for an answer that is being written; nobody depends on it.
const BRIEF: Duration = Duration::from_millis(100);

/// How long the last reports, lanes and calls may take when their actor is told to stop.
pub const REPORTER_PATIENCE: Duration = Duration::from_millis(500);
/// See [`REPORTER_PATIENCE`].
pub const RECONCILER_PATIENCE: Duration = Duration::from_millis(1_200);
/// See [`REPORTER_PATIENCE`].
pub const RPC_PATIENCE: Duration = Duration::from_secs(1);
/// See [`REPORTER_PATIENCE`]; giving back the lease takes a request, after all lanes have ended.
pub const LEASE_PATIENCE: Duration = Duration::from_millis(600);
/// See [`REPORTER_PATIENCE`]; of the servers that people and collectors ask.
pub const SIDE_SERVER_PATIENCE: Duration = BRIEF;

/// The part of its patience that an actor may wait for what it owns; in the rest it ends.
pub const fn drain(patience: Duration) -> Duration {
    patience.saturating_sub(TO_END)
}

/// Enough to cut off what is left and say so.
const TO_END: Duration = Duration::from_millis(50);

/// The whole tree.
pub const TREE: Node = root(&PARTS);

const PARTS: [Node; CONTROLLERS.len() + 4] = {
    let mut parts = [SERVERS; CONTROLLERS.len() + 4];
    parts[0] = worker("lease", 8, LEASE_PATIENCE);
    parts[1] = worker("heartbeat", 8, SHORT);
    let mut next = 0;
    while next < CONTROLLERS.len() {
        parts[next + 2] = controller(CONTROLLERS[next]);
        next += 1;
    }
    // Stopped after the servers: who asked through them has been answered by then.
    parts[next + 2] = worker("secrets", 512, SHORT);
    parts
};

const CONTROLLERS: [Controller; Controller::ALL.len()] = Controller::ALL;

/// What sees the cluster and tells the control plane.
const OBSERVER: Node = rest_for_one("observer", &[WATCH, REPORTER]);

/// What sees the cluster where there is nothing to tell.
const SILENT_OBSERVER: Node = rest_for_one("observer", &[WATCH]);

const WATCH: Node = worker("watch", 64, SHORT);
const REPORTER: Node = worker("reporter", 256, REPORTER_PATIENCE);

/// What hears the control plane and changes the cluster.
const INTAKE: Node = rest_for_one(
    "intake",
    &[
        // Its lanes finish the request they are at.
        worker("reconciler", 256, RECONCILER_PATIENCE),
        worker("stream", 64, SHORT),
        worker("resync", 64, SHORT),
        worker("replay", 64, SHORT),
    ],
);

const SERVERS: Node = supervisor(
    "servers",
    SupervisorPolicy {
        strategy: Strategy::OneForOne,
        intensity: 5,
        period: MINUTE,
        // Each for itself: the others must stay to tell of it.
        on_exhausted: OnExhausted::Park(krane_domain::restart::Backoff::PARK_SERVER),
        controller: None,
        // Calls in flight are answered.
        children: &[
            worker("rpc", 8, RPC_PATIENCE),
            worker("metrics", 8, SIDE_SERVER_PATIENCE),
            worker("health", 8, SIDE_SERVER_PATIENCE),
            worker("admin", 8, SIDE_SERVER_PATIENCE),
        ],
    },
);

/// Never gives up on a child: parks it and tries again.
const fn root(children: &'static [Node]) -> Node {
    supervisor(
        "root",
        SupervisorPolicy {
            strategy: Strategy::OneForOne,
            intensity: 5,
            period: MINUTE,
            on_exhausted: OnExhausted::Park(krane_domain::restart::Backoff::PARK),
            controller: None,
            children,
        },
    )
}

/// A controller lives and fails alone. Its children spend budgets of their own before they cost
/// it anything, so it has little patience: budgets of levels multiply.
const fn controller(which: Controller) -> Node {
    let children: &[Node] = if which.has_reports() {
        &[OBSERVER, INTAKE]
    } else {
        &[SILENT_OBSERVER, INTAKE]
    };
    supervisor(
        which.name(),
        SupervisorPolicy {
            strategy: Strategy::OneForOne,
            intensity: 2,
            period: Duration::from_mins(5),
            on_exhausted: OnExhausted::Escalate,
            controller: Some(which),
            children,
        },
    )
}

const fn rest_for_one(name: &'static str, children: &'static [Node]) -> Node {
    supervisor(
        name,
        SupervisorPolicy {
            strategy: Strategy::RestForOne,
            intensity: 5,
            period: MINUTE,
            on_exhausted: OnExhausted::Escalate,
            controller: None,
            children,
        },
    )
}

const fn supervisor(name: &'static str, policy: SupervisorPolicy) -> Node {
    Node {
        name,
        restart: Restart::Permanent,
        kind: Kind::Supervisor(policy),
    }
}

const fn worker(name: &'static str, mailbox: usize, patience: Duration) -> Node {
    let policy = WorkerPolicy {
        mailbox,
        handler_limit: Duration::from_secs(30),
        shutdown: Shutdown::Stop(patience),
    };
    Node {
        name,
        restart: Restart::Permanent,
        kind: Kind::Worker(policy),
    }
}

impl Node {
    /// The worker at this path from here, which begins with this node's own name.
    pub fn worker(&self, path: &str) -> Option<&WorkerPolicy> {
        let rest = path.strip_prefix(self.name)?;
        match (&self.kind, rest.strip_prefix('/')) {
            (Kind::Worker(policy), None) if rest.is_empty() => Some(policy),
            (Kind::Supervisor(policy), Some(rest)) => {
                policy.children.iter().find_map(|child| child.worker(rest))
            }
            (Kind::Worker(_) | Kind::Supervisor(_), _) => None,
        }
    }

    /// A vacant address for the worker at this path, with the mailbox the tree gives it.
    pub fn address<M: Message>(&self, path: &str) -> Result<Address<M>, TreeError> {
        let policy = self
            .worker(path)
            .ok_or_else(|| TreeError::UnknownWorker { path: path.into() })?;
        Ok(Address::vacant(path, policy.mailbox))
    }

    /// Path and mailbox capacity of a controller's worker, by its name.
    pub fn place(&self, controller: Controller, name: &str) -> Option<(Arc<str>, usize)> {
        let mut place = None;
        self.walk("", None, &mut |path, node, facts| {
            if let Kind::Worker(policy) = node.kind
                && facts.controller == Some(controller)
                && node.name == name
            {
                place = Some((Arc::clone(path), policy.mailbox));
            }
        });
        place
    }

    /// How long this part of the tree may take to stop: one after the other.
    pub fn patience(&self) -> Duration {
        match &self.kind {
            Kind::Worker(policy) => match policy.shutdown {
                Shutdown::Stop(patience) | Shutdown::Drain(patience) => patience,
                Shutdown::Brutal => Duration::ZERO,
            },
            Kind::Supervisor(policy) => {
                policy.children.iter().map(Self::patience).sum::<Duration>()
                    + Duration::from_millis(50)
            }
        }
    }

    /// Publishes every place of the tree as not started yet.
    pub fn declare(&self, board: &StatusBoard) {
        self.walk("", None, &mut |path, _, facts| board.declare(path, facts));
    }

    /// Visits this node and all below, each before its children.
    fn walk(
        &self,
        parent: &str,
        controller: Option<Controller>,
        visit: &mut impl FnMut(&Arc<str>, &Self, Facts),
    ) {
        let path = join(parent, self.name);
        match &self.kind {
            Kind::Worker(policy) => {
                let handler_limit = Some(policy.handler_limit);
                visit(
                    &path,
                    self,
                    Facts {
                        controller,
                        handler_limit,
                    },
                );
            }
            Kind::Supervisor(policy) => {
                let controller = policy.controller.or(controller);
                visit(
                    &path,
                    self,
                    Facts {
                        controller,
                        handler_limit: None,
                    },
                );
                for child in policy.children {
                    child.walk(&path, controller, visit);
                }
            }
        }
    }
}

fn join(parent: &str, name: &str) -> Arc<str> {
    if parent.is_empty() {
        name.into()
    } else {
        format!("{parent}/{name}").into()
    }
}
