//! The supervision tree as data, in start order, with each policy beside the name it is for.
//!
//! Whoever wants to know what restarts with what reads [`TREE`]; `krane_supervision::tree::assemble` makes a
//! specification of it for the supervisors, with the workers' start functions put in.

use std::time::Duration;

use krane_domain::ids::Controller;

use krane_supervision::restart::Backoff;
use krane_supervision::supervisor::{OnExhausted, Restart, Shutdown, Strategy};
use krane_supervision::tree::{Group, Kind, Node, SupervisorPolicy, WorkerPolicy};

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
        on_exhausted: OnExhausted::Park(Backoff::PARK_SERVER),
        group: None,
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
            on_exhausted: OnExhausted::Park(Backoff::PARK),
            group: None,
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
            group: Some(Group {
                name: which.name(),
                role: "controller",
                prepare_timeout: PREPARE_TIMEOUT,
            }),
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
            group: None,
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

#[cfg(test)]
mod tests;
