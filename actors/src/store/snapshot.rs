//! Copies of what a store knows, for people who look at it.
//!
//! Everything is cut to what is shown and bounded; no copy holds secret content. The lock is held
//! for a few objects at a time, so that looking never makes an actor wait long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krane_domain::backlog::{InTrouble, Stages, Standing, TroubleKind};
use krane_domain::desired::Change;
use krane_domain::ids::{Controller, Moment, ObjectKey, WorkKey};
use krane_domain::kinds::Desired;
use krane_domain::object::Resource;
use krane_domain::outbox::Told;
use krane_domain::pod::PodDigest;

use super::outage::silence;
use super::{BrokenWatch, Memory, ResyncSummary, Silence, Store, StreamMemory};
use crate::breaker::BreakerState;

/// Keys in trouble that a copy holds; the others are only counted.
pub const MOST_TROUBLES: usize = 500;
/// Pods of one workload that a copy holds.
pub const MOST_PODS: usize = 50;
/// Workloads copied under one lock.
const AT_ONCE: usize = 64;

/// How a controller is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSnapshot {
    /// Which one.
    pub controller: Controller,
    /// Whether the first complete lists are done.
    pub is_listed: bool,
    /// Where the stream would go on.
    pub cursor: u64,
    /// The highest version received.
    pub highest: u64,
    /// Objects with a state that was not brought about yet.
    pub unapplied: usize,
    /// Keys that wait for a lane.
    pub queued: usize,
    /// Keys of which something waits only because another renderer made it (D44).
    pub to_upgrade: usize,
    /// Lanes at work.
    pub in_flight: usize,
    /// Bytes of states that wait to be applied.
    pub waiting_bytes: usize,
    /// Workloads that wait for shared objects.
    pub blocked: usize,
    /// Keys in trouble, the worst kinds first, at most [`MOST_TROUBLES`].
    pub troubles: Vec<InTrouble>,
    /// All keys in trouble.
    pub trouble_count: usize,
    /// Of these, objects that a person put on hold.
    pub on_hold: usize,
    /// Objects whose deletion is held.
    pub held: BTreeSet<ObjectKey>,
    /// The desired-state stream.
    pub stream: StreamMemory,
    /// Guards reports and questions.
    pub breaker: BreakerState,
    /// Since when no report or question gets through, if one failed.
    pub failing_since: Option<Moment>,
    /// Objects whose newest report is not delivered.
    pub undelivered: usize,
    /// Reports being sent.
    pub reports_in_flight: usize,
    /// The last pass over all objects.
    pub last_resync: Option<ResyncSummary>,
    /// Objects and pods known of the cluster.
    pub known: (usize, usize),
    /// Names that more than one namespace holds.
    pub name_conflicts: usize,
    /// Kinds the API server does not know.
    pub kinds_missing: Vec<Resource>,
    /// Kinds that are watched.
    pub watched: Vec<Resource>,
    /// Kinds whose watch does not work at present.
    pub broken_watches: BTreeMap<Resource, BrokenWatch>,
    /// Since when the API server answers none of them, if so.
    pub silence: Option<Silence>,
}

/// One workload: wanted, live and reported.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSnapshot {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The control plane's id, if the state says one.
    pub id: Option<Arc<str>>,
    /// The wanted version; 0 if an answer to a question was the first word.
    pub version: u64,
    /// Pods wanted; none when the state is invalid, wants the object gone or is about none.
    pub replicas: Option<u32>,
    /// Whether the object is wanted gone.
    pub is_unwanted: bool,
    /// Where it stands.
    pub standing: Standing,
    /// When something was last written for it.
    pub written_at: Option<Moment>,
    /// Its live pods, at most [`MOST_PODS`].
    pub pods: Vec<Arc<PodDigest>>,
    /// All its live pods.
    pub pod_count: usize,
    /// Living pods made from another template than the live one.
    pub outdated: usize,
    /// Why pods cannot start, in the kubelet's words.
    pub config_error: Option<Arc<str>>,
    /// Whether its pod template is kept as another renderer made it, until its turn to roll (D44).
    pub waits_to_roll: bool,
    /// Whether its deletion is held.
    pub is_held: bool,
    /// What the control plane was told.
    pub told: Option<Told>,
    /// How far the newest version has come, and when.
    pub stages: Option<Stages>,
}

impl Store {
    /// How the controller is doing now.
    pub fn snapshot(&self) -> ControllerSnapshot {
        let controller = self.controller;
        let specs = controller.watches(&self.rules);
        let watched = specs.into_iter().map(|spec| spec.resource).collect();
        self.with(|memory| {
            let mut troubles: Vec<InTrouble> = memory.backlog.in_trouble().collect();
            let trouble_count = troubles.len();
            let held = troubles
                .iter()
                .filter(|it| it.trouble.kind == TroubleKind::Held);
            let on_hold = held.count();
            troubles.sort_by_key(|trouble| trouble.trouble.kind);
            troubles.truncate(MOST_TROUBLES);
            ControllerSnapshot {
                controller,
                is_listed: memory.is_listed,
                cursor: memory.backlog.cursor(),
                highest: memory.backlog.highest(),
                unapplied: memory.backlog.unapplied(),
                queued: memory.backlog.ready(),
                to_upgrade: memory.to_upgrade(),
                in_flight: memory.backlog.in_flight(),
                waiting_bytes: memory.backlog.bytes(),
                blocked: memory.backlog.blocked().count(),
                troubles,
                trouble_count,
                on_hold,
                held: memory.brake.held().clone(),
                stream: memory.stream.clone(),
                breaker: memory.breaker.state(),
                failing_since: memory.breaker.failing_since(),
                undelivered: memory.outbox.undelivered(),
                reports_in_flight: memory.outbox.in_flight(),
                last_resync: memory.last_resync.clone(),
                known: memory.view.len(),
                name_conflicts: memory.view.name_conflicts(),
                kinds_missing: memory.kinds_missing.iter().copied().collect(),
                watched,
                broken_watches: memory.broken_watches.clone(),
                silence: silence(memory, controller, &self.rules),
            }
        })
    }

    /// Every workload something is wanted of, in key order. What is wanted gone and is gone is
    /// left out.
    pub fn workloads(&self) -> Vec<WorkloadSnapshot> {
        let keys: Vec<ObjectKey> = self.with(|memory| {
            let states = memory.backlog.states();
            states.map(|state| state.key.clone()).collect()
        });
        let mut workloads = Vec::with_capacity(keys.len());
        for some in keys.chunks(AT_ONCE) {
            self.with(|memory| {
                workloads.extend(some.iter().filter_map(|key| workload(memory, key)));
            });
        }
        workloads
    }
}

pub(super) fn workload(memory: &Memory, key: &ObjectKey) -> Option<WorkloadSnapshot> {
    let state = memory.backlog.state(key)?;
    let standing = memory.backlog.standing(&WorkKey::Workload(key.clone()))?;
    let is_unwanted = matches!(state.change, Ok(Change::Delete));
    if is_unwanted && matches!(standing, Standing::InPlace { .. }) {
        return None;
    }
    let desired: Option<&Desired> = match &state.change {
        Ok(Change::Apply(desired)) => Some(desired),
        Ok(Change::Delete) | Err(_) => None,
    };
    let live = memory.view.workload(key);
    let mut pods = live.map_or_else(Vec::new, |live| memory.view.pods_of(live));
    let pod_count = pods.len();
    pods.truncate(MOST_PODS);
    Some(WorkloadSnapshot {
        key: key.clone(),
        id: desired.map(|desired| Arc::clone(desired.id())),
        version: state.version,
        replicas: desired.and_then(Desired::replicas),
        is_unwanted,
        standing,
        written_at: memory.backlog.written_at(key),
        pods,
        pod_count,
        outdated: memory.outdated.get(key).copied().unwrap_or_default(),
        config_error: memory.config_errors.get(key).cloned(),
        waits_to_roll: memory.rolls.waits(key),
        is_held: memory.brake.held().contains(key),
        told: memory.outbox.told(&key.name),
        stages: memory.backlog.stages(key),
    })
}
