//! What goes wrong in a run: a list of faults, each independent of the others, so that a failing
//! list can be cut down.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use krane_domain::ids::Controller;
use serde::{Deserialize, Serialize};

mod chance;

pub use chance::{Intensity, at_random};

/// Everything that goes wrong in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plan {
    /// In no particular order.
    pub faults: Vec<Fault>,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// To a call to the cluster, by its number in the run.
    Cluster(u64, CallFault),
    /// To a call to the control plane, streams being opened included.
    Control(u64, CallFault),
    /// To an event of a cluster watch.
    Event(u64, EventFault),
    /// To a message of a desired-state stream.
    Message(u64, MessageFault),
    /// To the world, so many milliseconds after the start.
    World(u64, WorldFault),
    /// To the actor with this number in [`ACTORS`], at a message (see `krane_supervision::fault`).
    Actor(usize, ActorFault),
}

/// What goes wrong with a call. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallFault {
    /// It arrives late.
    DelayBefore(u64),
    /// Its answer arrives late.
    DelayAfter(u64),
    /// It is refused, in the way of this number.
    Refuse(u8),
    /// It is carried out, and its answer is lost.
    LoseAnswer,
    /// It gets nowhere and is never answered.
    Hang,
    /// It is carried out after the caller has given up.
    Late(u64),
    /// The process dies before it is carried out.
    CrashBefore,
    /// The process dies before it is answered.
    CrashAfter,
}

/// What goes wrong with an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventFault {
    /// It and all behind it are late.
    Delay(u64),
    /// It comes twice.
    Repeat,
    /// It comes after the next one of another object.
    Swap,
    /// The connection breaks instead.
    Break,
    /// Nothing comes any more, and the connection stays.
    Silence,
    /// It and so many more are lost, then everything has to be listed again.
    Gap(u8),
}

/// What goes wrong with a message of a desired-state stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageFault {
    /// The stream ends instead.
    Cut,
    /// It ends well instead.
    CutCleanly,
    /// The message and all behind it are late.
    Delay(u64),
    /// It comes twice.
    Repeat,
    /// It comes after the next one.
    Swap,
    /// The connection is dead, which is noticed after 15 s.
    Silence,
}

/// What happens to the world. Durations are in milliseconds; numbers choose among what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorldFault {
    /// The control plane cannot be reached.
    ControlAway(u64),
    /// The control plane is silent.
    ControlFrozen(u64),
    /// All desired-state streams end.
    CutStreams,
    /// Whether streams show that they are open before their first message.
    HoldHeaders(bool),
    /// Rows come by version, twice, newest first, or shuffled.
    Order(u8),
    /// Rows that were replaced are shown, too.
    History,
    /// Somebody makes an object of the name of a workload before krane does.
    Squat(u8),
    /// The control plane is restored from a copy made so many steps of the script ago.
    Restore(u8),
    /// The control plane has lost everything, and gets it back.
    Amnesia(u64),
    /// The API server is away.
    ClusterAway(u64),
    /// All watches break.
    BreakWatches,
    /// All watches break, and what happened is forgotten.
    Compact,
    /// The process's reads and watches come from a server that is so many versions behind.
    Lag(u16, u64),
    /// Other kinds change so often.
    SkipVersions(u16),
    /// A pod's container ends badly.
    CrashPod(u16),
    /// A pod is evicted.
    EvictPod(u16),
    /// A pod is deleted by somebody.
    DeletePod(u16),
    /// A pod's probe fails.
    UnreadyPod(u16, u64),
    /// A node is lost.
    LoseNode(u8, u64),
    /// Somebody edits an object of ours: which, and how.
    Edit(u16, u8),
    /// Somebody deletes an object of ours.
    Delete(u16),
    /// Somebody takes our label off an object of ours.
    Unlabel(u16),
    /// Somebody deletes a namespace of ours.
    DeleteNamespace(u8),
    /// The definition of network policies is removed.
    DefinitionAway(u64),
    /// The Secret that the pods of sentinels cannot do without is removed.
    SecretAway(u64),
    /// An actor, by its number in [`ACTORS`], is killed.
    Kill(usize),
    /// The process dies.
    Crash,
}

/// What an actor does at a message. Numbers count the messages it handles first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActorFault {
    /// Panics before the message has any effect.
    Panic(u32),
    /// Panics after it.
    PanicAfter(u32),
    /// Gives up with an error.
    Fail(u32),
    /// Never returns.
    Hang(u32),
}

/// What can be killed: workers first, then supervisors.
pub const ACTORS: [&str; 28] = [
    "root/heartbeat",
    "root/deployments/observer/watch",
    "root/deployments/observer/reporter",
    "root/deployments/intake/reconciler",
    "root/deployments/intake/stream",
    "root/deployments/intake/resync",
    "root/deployments/intake/replay",
    "root/servers/rpc",
    "root/sentinels/observer/watch",
    "root/sentinels/observer/reporter",
    "root/sentinels/intake/reconciler",
    "root/sentinels/intake/stream",
    "root/sentinels/intake/resync",
    "root/sentinels/intake/replay",
    "root/cilium/observer/watch",
    "root/cilium/intake/reconciler",
    "root/cilium/intake/stream",
    "root/cilium/intake/resync",
    "root/cilium/intake/replay",
    "root/deployments/observer",
    "root/deployments/intake",
    "root/deployments",
    "root/sentinels/observer",
    "root/sentinels/intake",
    "root/sentinels",
    "root/cilium/observer",
    "root/cilium/intake",
    "root/cilium",
];

/// The reconciler of deployments among [`ACTORS`].
pub(crate) const RECONCILER: usize = 3;

/// How many of [`ACTORS`] are workers.
pub const WORKERS: usize = 19;

/// The workers of a controller among [`ACTORS`]; whatever belongs to none is with deployments.
pub const fn workers_of(controller: Controller) -> Range<usize> {
    match controller {
        Controller::Deployments => 0..8,
        Controller::Sentinels => 8..14,
        Controller::Cilium => 14..WORKERS,
    }
}

impl Plan {
    /// A plan of one fault.
    pub fn of(fault: Fault) -> Self {
        Self {
            faults: vec![fault],
        }
    }

    /// The plan as `KRANE_PLAN` takes it.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Self::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|problem| format!("no plan: {problem}"))
    }

    /// Whether any fault is like this.
    pub fn has(&self, is_like: impl Fn(&WorldFault) -> bool) -> bool {
        let mut world = self.faults.iter().filter_map(|fault| match fault {
            Fault::World(_, what) => Some(what),
            _ => None,
        });
        world.any(is_like)
    }
}

impl Fault {
    /// The kinds that plans at random are made of.
    pub fn kinds_at_random() -> BTreeSet<String> {
        let mut chance = fastrand::Rng::with_seed(1);
        let intensity = Intensity {
            chaos: 600_000,
            calls: 500,
        };
        let plans = (0..2_000).map(|_| at_random(&mut chance, intensity));
        plans
            .flat_map(|plan| plan.faults)
            .map(|fault| fault.kind())
            .collect()
    }

    /// Its kind, for the summary.
    pub fn kind(&self) -> String {
        let (side, what) = match self {
            Self::Cluster(_, what) => ("cluster call", format!("{what:?}")),
            Self::Control(_, what) => ("control-plane call", format!("{what:?}")),
            Self::Event(_, what) => ("watch event", format!("{what:?}")),
            Self::Message(_, what) => ("stream message", format!("{what:?}")),
            Self::World(_, what) => ("world", format!("{what:?}")),
            Self::Actor(_, what) => ("actor", format!("{what:?}")),
        };
        let name = what.split('(').next().unwrap_or_default();
        format!("{side}: {name}")
    }
}

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
