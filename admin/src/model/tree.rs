//! The supervision tree as it is.

use std::time::Duration;

use krane_actors::status::controller_of;
use krane_actors::tree::TREE;
use krane_domain::ids::Controller;
use krane_supervision::status::{Activity, ActorStatus, StatusCell, Timing};
use krane_supervision::supervisor::Strategy;
use krane_supervision::tree::{Kind, Node};
use serde::Serialize;

use super::{ControllerView, Epoch, Level, Sources, Stamp, WatchesView};

/// One actor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActorView {
    /// From the root, with slashes.
    pub path: String,
    /// The last part of the path.
    pub name: &'static str,
    /// Supervisors above it.
    pub depth: usize,
    /// Who is restarted with whom below it; none for workers.
    pub strategy: Option<&'static str>,
    /// The controller that begins here or that it belongs to.
    pub controller: Option<&'static str>,
    /// What it is doing, one of a closed set.
    pub state: &'static str,
    /// How bad that is.
    pub level: Level,
    /// Since when it is up or down.
    pub since: Stamp,
    /// The message that is being handled.
    pub handling: Option<&'static str>,
    /// Since when that is handled.
    pub handling_since: Option<Stamp>,
    /// When it starts again.
    pub starts_at: Option<Stamp>,
    /// The same, under its older name.
    pub until: Option<Stamp>,
    /// The message that last woke it.
    pub last_message: Option<&'static str>,
    /// How the last message ended: `ok`, `running` or `failed`; none before the first.
    pub last_result: Option<&'static str>,
    /// Messages handled.
    pub handled: u64,
    /// Starts after the first.
    pub restarts: u64,
    /// Panics.
    pub panics: u64,
    /// Handlers that ran too long.
    pub hangs: u64,
    /// Whether it spent its restart budget and waits to come back with fresh state.
    pub parked: bool,
    /// Its mailbox; supervisors have none.
    pub mailbox: Option<MailboxView>,
    /// How long its messages wait and take; supervisors and whoever handled none have none.
    pub timing: Option<TimingView>,
    /// Why it last went down, kept after recovery.
    pub last_error: Option<ErrorView>,
    /// The breaker of the controller that begins here.
    pub breaker: Option<&'static str>,
    /// Watches to the API server that do not work at present, of the actor that follows them.
    pub watches_broken: usize,
    /// What does not work at present though the actor does, such as those watches, and since when.
    pub trouble: Option<ErrorView>,
}

/// A mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MailboxView {
    /// Messages waiting or being handled.
    pub depth: usize,
    /// Messages from outside that may wait at once.
    pub capacity: usize,
    /// The most that waited since the process began.
    pub high_water: usize,
}

/// How long messages of one actor wait and take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimingView {
    /// The last one in the mailbox.
    pub last_wait_ms: f64,
    /// The last one in its handler.
    pub last_handle_ms: f64,
    /// On average in the mailbox.
    pub mean_wait_ms: f64,
    /// On average in its handler.
    pub mean_handle_ms: f64,
}

impl TimingView {
    fn of(timing: Timing) -> Self {
        let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            last_wait_ms: millis(timing.last_wait),
            last_handle_ms: millis(timing.last_handle),
            mean_wait_ms: millis(timing.mean_wait),
            mean_handle_ms: millis(timing.mean_handle),
        }
    }
}

/// Why an actor went down, or what keeps it from its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorView {
    /// When.
    pub at: Stamp,
    /// One of a closed set.
    pub kind: &'static str,
    /// The words; of a panic only the place.
    pub text: String,
}

pub(super) fn view(sources: &Sources, controllers: &[ControllerView]) -> Vec<ActorView> {
    let mut actors = Vec::new();
    let mut walk = Walk {
        sources,
        controllers,
        actors: &mut actors,
    };
    walk.visit(&TREE, "", 0);
    actors
}

struct Walk<'a> {
    sources: &'a Sources,
    controllers: &'a [ControllerView],
    actors: &'a mut Vec<ActorView>,
}

impl Walk<'_> {
    fn visit(&mut self, node: &Node, parent: &str, depth: usize) {
        let path = if parent.is_empty() {
            node.name.to_owned()
        } else {
            format!("{parent}/{}", node.name)
        };
        if let Some(cell) = self.sources.board.find(&path) {
            let actor = self.actor(node, path.clone(), depth, &cell);
            self.actors.push(actor);
        }
        if let Kind::Supervisor(policy) = &node.kind {
            for child in policy.children {
                self.visit(child, &path, depth + 1);
            }
        }
    }

    fn actor(&self, node: &Node, path: String, depth: usize, cell: &StatusCell) -> ActorView {
        let status = cell.read();
        let epoch = &self.sources.epoch;
        let facts = cell.facts();
        let (strategy, begins) = match &node.kind {
            Kind::Worker(_) => (None, None),
            Kind::Supervisor(policy) => (
                Some(strategy_name(policy.strategy)),
                controller_of(policy.group.map(|group| group.name)),
            ),
        };
        let (handling, handling_since) = match &status.activity {
            Activity::Handling { message, since } => (Some(*message), Some(epoch.at(*since))),
            Activity::Starting
            | Activity::Preparing
            | Activity::Idle
            | Activity::Restarting { .. }
            | Activity::Parked { .. }
            | Activity::Stopped => (None, None),
        };
        let controller = controller_of(facts.and_then(|facts| facts.group));
        let shown = |whose: Option<Controller>| {
            let mut all = self.controllers.iter();
            all.find(|it| whose.is_some_and(|whose| it.name == whose.name()))
        };
        // It waits for news as it should: that none comes is no matter of its own state.
        let watches = match (node.name, shown(controller)) {
            ("watch", Some(shown)) => Some(&shown.watches),
            _ => None,
        };
        let watches_broken = watches.map_or(0, |it| it.broken.len());
        let level = match watches_broken {
            0 => level(&status),
            _ => level(&status).max(Level::Warn),
        };
        ActorView {
            path,
            name: node.name,
            depth,
            strategy,
            controller: controller.map(Controller::name),
            state: state_name(&status.activity),
            level,
            since: epoch.at(status.since),
            handling,
            handling_since,
            starts_at: starts_at(&status.activity, epoch),
            until: starts_at(&status.activity, epoch),
            last_message: status.last_message,
            last_result: last_result(&status),
            handled: status.handled,
            restarts: status.restarts,
            panics: status.panics,
            hangs: status.hangs,
            parked: matches!(status.activity, Activity::Parked { .. }),
            mailbox: cell.gate().map(|gate| MailboxView {
                depth: gate.depth(),
                capacity: gate.capacity(),
                high_water: gate.high_water(),
            }),
            timing: (cell.gate().is_some() && status.handled > 0)
                .then(|| TimingView::of(cell.timing())),
            last_error: status.last_failure.as_ref().map(|failure| ErrorView {
                at: epoch.at(failure.at),
                kind: failure.kind,
                text: failure.text.to_string(),
            }),
            breaker: begins
                .and_then(|begins| shown(Some(begins)))
                .map(|ours| ours.breaker),
            watches_broken,
            trouble: watches.and_then(broken),
        }
    }
}

/// Each error once, with the kinds that it keeps from being watched.
fn broken(watches: &WatchesView) -> Option<ErrorView> {
    let at = watches.broken.iter().map(|watch| watch.since).min()?;
    let errors = watches.by_error().into_iter();
    let errors: Vec<_> = errors
        .map(|(_, error, kinds)| format!("{kinds}: {error}"))
        .collect();
    Some(ErrorView {
        at,
        kind: "watch",
        text: errors.join("; "),
    })
}

const fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::OneForOne => "one_for_one",
        Strategy::RestForOne => "rest_for_one",
    }
}

const fn state_name(activity: &Activity) -> &'static str {
    match activity {
        Activity::Starting => "starting",
        Activity::Preparing => "preparing",
        Activity::Idle => "idle",
        Activity::Handling { .. } => "handling",
        Activity::Restarting { .. } => "restarting",
        Activity::Parked { .. } => "parked",
        Activity::Stopped => "stopped",
    }
}

fn level(status: &ActorStatus) -> Level {
    match status.activity {
        Activity::Idle | Activity::Handling { .. } => Level::Good,
        Activity::Starting | Activity::Preparing => Level::Busy,
        Activity::Restarting { .. } | Activity::Stopped => Level::Warn,
        Activity::Parked { .. } => Level::Bad,
    }
}

fn starts_at(activity: &Activity, epoch: &Epoch) -> Option<Stamp> {
    match activity {
        Activity::Restarting { until } | Activity::Parked { until } => Some(epoch.at(*until)),
        Activity::Starting
        | Activity::Preparing
        | Activity::Idle
        | Activity::Handling { .. }
        | Activity::Stopped => None,
    }
}

fn last_result(status: &ActorStatus) -> Option<&'static str> {
    status.last_message?;
    Some(match &status.activity {
        Activity::Handling { .. } => "running",
        Activity::Restarting { .. } | Activity::Parked { .. } => "failed",
        Activity::Starting | Activity::Preparing | Activity::Idle | Activity::Stopped => "ok",
    })
}
