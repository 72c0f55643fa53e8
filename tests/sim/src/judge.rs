//! Safety: what must hold at every call and every event.

mod sentinels;

use std::sync::Arc;
use std::time::Duration;

use krane_domain::desired::{Change, State};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::{Desired, Rules};
use krane_domain::labels;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::report::{InstanceStatus, Report};
use krane_ports::{Answer, Item, Listed};
use krane_sim::cluster::Admin;
use serde_json::Value;
use tokio::time::Instant;

use crate::kinds::{controller_of, is_primary, primary, sentinel_of};
use crate::ledger::{Ledger, Received, ReceivedWant, Want};
use crate::script::{STAMP, stamp_of};

/// A deletion that was called for may still be on its way for this long.
const ON_ITS_WAY: Duration = Duration::from_secs(400);
/// "Not found" counts when it is said again this much later.
const SECOND_QUESTION: Duration = Duration::from_secs(5);
/// The window of the brake.
const WINDOW: Duration = Duration::from_secs(3600);

fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

fn is_ours(object: &Value) -> bool {
    label(object, labels::MANAGED_BY) == Some(labels::MANAGER)
}

fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The stamp of the state that an object was last applied from.
pub(crate) fn stamp(object: &Value) -> Option<u64> {
    let annotation = object["metadata"]["annotations"][STAMP].as_str();
    [
        label(object, labels::BUILD_ID),
        label(object, labels::APP_ID),
        annotation,
    ]
    .into_iter()
    .flatten()
    .find_map(stamp_of)
}

fn wanted(change: &Result<Change, Invalid>) -> ReceivedWant {
    match change {
        Ok(Change::Apply(desired)) => {
            // Every answer comes past here: most stamps are found without rendering.
            let stamp = match desired {
                Desired::Deployment(desired) => stamp_of(&desired.build_id),
                Desired::Sentinel(desired) => stamp_of(&desired.app_id),
                Desired::CiliumNetworkPolicy(_) => {
                    stamp(&desired.render(&Rules::default(), None).body)
                }
            };
            ReceivedWant::Apply(stamp.unwrap_or_default())
        }
        Ok(Change::Delete) => ReceivedWant::Delete,
        Err(_) => ReceivedWant::Poison,
    }
}

impl Ledger {
    /// S1, S2: an apply is about to be carried out.
    pub(crate) fn judge_apply(
        &mut self,
        admin: &Admin,
        controller: Controller,
        object: &Rendered,
        uid: Option<&str>,
    ) {
        let reference = &object.reference;
        let before = admin.get(reference);
        if let Some(before) = &before {
            let live = uid_of(before);
            if !is_ours(before) && !self.made.contains(live) && !self.was_lagging {
                self.violate("S1", format!("{reference} is not ours and is written"));
            }
            let may_be_surprised = self.was_lagging || self.had_late;
            let was_shown = self.shown.contains(&(live.into(), controller));
            // Another controller may make a namespace while the apply is on its way.
            let is_shared = reference.resource == Resource::Namespace;
            if uid.is_none() && was_shown && !may_be_surprised && !is_shared {
                let text = format!("{reference} is applied without the uid that was shown");
                self.violate("S1", text);
            }
        }
        if is_primary(reference) {
            let key = reference.key();
            if let Some(stamp) = stamp(&object.body) {
                let floor = self.floor.get(&key).copied().unwrap_or_default();
                // After a restore, what was on its way before it may still be applied.
                if stamp < floor && !self.was_restored {
                    let text = format!("{key} is applied from {stamp} after {floor}");
                    self.violate("S2", text);
                }
                if !self.was_restored && self.outdated.contains(&(key.clone(), stamp)) {
                    let text = format!("{key} is applied from {stamp}, outdated on arrival");
                    self.violate("S2", text);
                }
            }
        }
    }

    /// S9: a workload was written.
    fn judge_isolation(&mut self, admin: &Admin, object: &Rendered) {
        let namespace = object.reference.namespace.to_string();
        let environment = label(&object.body, labels::ENVIRONMENT_ID).unwrap_or_default();
        let place = (namespace, environment.to_owned());
        if !self.policies.contains(&place) {
            let all = admin.list("CiliumNetworkPolicy", Some(&place.0));
            let is_there = all
                .iter()
                .any(|policy| label(policy, labels::ENVIRONMENT_ID) == Some(&*place.1));
            let text = format!("{} before its isolation policy", object.reference);
            if is_there {
                self.policies.insert(place);
            } else {
                self.violate("S9", text);
            }
        }
    }

    /// An apply was carried out.
    pub(crate) fn applied(
        &mut self,
        admin: &Admin,
        controller: Controller,
        object: &Rendered,
        uid: &Arc<str>,
    ) {
        self.made.insert(Arc::clone(uid));
        self.shown.insert((Arc::clone(uid), controller));
        self.applied += 1;
        let reference = &object.reference;
        if reference.resource == Resource::ReplicaSet {
            self.judge_isolation(admin, object);
        }
        if let Some(stamp) = self.reach(object) {
            // An answer may be ahead of a stream that is late: what that brings next is news to krane.
            if self.by_stream.contains(&(reference.key(), stamp)) {
                self.floor.insert(reference.key(), stamp);
            }
        }
    }

    /// An object has reached the state that this was rendered from; its stamp.
    pub(crate) fn reach(&mut self, object: &Rendered) -> Option<u64> {
        let reference = &object.reference;
        let stamp = stamp(&object.body).filter(|_| is_primary(reference))?;
        let reached = self.reached.entry(reference.key()).or_default();
        *reached = stamp.max(*reached);
        Some(stamp)
    }

    /// S1, S8: a delete is about to be carried out.
    pub(crate) fn judge_delete(&mut self, admin: &Admin, object: &ObjectRef, uid: &str) {
        let live = admin.get(object);
        if uid.is_empty() {
            self.violate("S1", format!("{object} is deleted whatever its uid"));
        }
        let Some(live) = live.filter(|live| uid_of(live) == uid) else {
            return;
        };
        if !is_ours(&live) && !self.made.contains(uid) {
            self.violate("S1", format!("{object} is not ours and is deleted"));
        }
        if object.resource == Resource::Namespace {
            self.violate("S1", format!("{object} is deleted"));
        }
        if is_terminating(&live) {
            return;
        }
        if let Some(sentinel) = sentinel_of(object) {
            self.judge_companion(object, &live, &sentinel);
        }
        if !is_primary(object) {
            return;
        }
        let key = object.key();
        let now = Instant::now();
        if !self.is_called_for(&key) {
            self.violate("S8", format!("{key} is deleted, and nobody said so"));
        }
        if controller_of(&key) == Controller::Sentinels {
            self.judge_order(admin, &key);
        }
        let was_unwanted = self
            .unwanted_at
            .get(&key)
            .is_some_and(|at| now - *at < ON_ITS_WAY);
        match self.wants.get(&key) {
            Some(Want::Delete) => {}
            Some(Want::Unknown) | None => self.judge_disowned(admin, controller_of(&key), now),
            Some(Want::Apply(_) | Want::Poison) if was_unwanted => {}
            Some(Want::Apply(_) | Want::Poison) => {
                self.violate("S8", format!("{key} is wanted and deleted"));
            }
        }
    }

    /// Whether the process was told to delete it, or told twice that nobody knows it.
    fn is_called_for(&self, key: &ObjectKey) -> bool {
        let answers = self.not_found.get(key).map(Vec::as_slice);
        let is_confirmed = answers.is_some_and(|answers| {
            let (first, last) = (answers.first(), answers.last());
            first
                .zip(last)
                .is_some_and(|(first, last)| *last - *first >= SECOND_QUESTION)
        });
        self.told_to_delete.contains(key) || is_confirmed
    }

    fn judge_disowned(&mut self, admin: &Admin, controller: Controller, now: Instant) {
        let disowned = self.disowned.entry(controller).or_default();
        disowned.push_back(now);
        while disowned.front().is_some_and(|at| *at + WINDOW < now) {
            disowned.pop_front();
        }
        let deleted = disowned.len();
        // The brake judged when nothing of this pass was gone yet.
        let live = admin.list(controller.primary().kind(), None);
        let objects = live.len() + deleted;
        if deleted > (objects / 10).max(3) {
            let text = format!("{deleted} of {objects} deleted that are not known");
            self.violate("S8", text);
        }
    }

    /// A delete was carried out.
    pub(crate) fn carried_out_delete(&mut self, object: &ObjectRef) {
        if is_primary(object) {
            let key = object.key();
            let received = self.received.get(&key).into_iter().flatten();
            if let Some(newest) = received.map(|state| state.version).max() {
                self.deleted.insert(key, newest);
            }
        }
    }

    /// S5: a call that changes this object begins.
    pub(crate) fn begin_write(&mut self, object: &str) {
        let writing = self.writing.entry(object.to_owned()).or_default();
        *writing += 1;
        if *writing > 1 {
            self.violate("S5", format!("{object} is written twice at once"));
        }
    }

    pub(crate) fn end_write(&mut self, object: &str) {
        if let Some(writing) = self.writing.get_mut(object) {
            *writing -= 1;
            if *writing == 0 {
                self.writing.remove(object);
            }
        }
    }

    /// The process is shown an object or a pod.
    pub(crate) fn show(&mut self, controller: Controller, item: &Item) {
        match item {
            Item::Object(live) => {
                self.shown.insert((Arc::clone(&live.uid), controller));
                if live.reference.resource == Resource::Deployment {
                    self.show_health(live);
                }
            }
            Item::Pod(pod) => {
                let is_running = pod.is_ready
                    && pod.phase == krane_domain::pod::PodPhase::Running
                    && !pod.is_terminating;
                let ip = pod.ip.as_deref().unwrap_or_default().to_owned();
                let known = self.pods.entry(Arc::clone(&pod.name)).or_default();
                known.insert((is_running, ip));
            }
        }
    }

    pub(crate) fn show_all(&mut self, controller: Controller, listed: &Listed) {
        for item in &listed.items {
            self.show(controller, item);
        }
    }

    /// An answer reaches the process, to a question asked then.
    pub(crate) fn answer(&mut self, key: &ObjectKey, answer: &Answer, asked: Instant) {
        match answer {
            Answer::State { change, .. } => {
                self.not_found.remove(key);
                let is_newest = self.spoken_of.get(key).is_none_or(|at| *at < asked);
                if let Some(received) = self.received.get_mut(key)
                    && let Some(newest) = received.iter().map(|state| state.version).max()
                    && is_newest
                {
                    received.push(Received {
                        version: newest,
                        wants: wanted(change),
                    });
                }
                if matches!(change, Ok(Change::Delete)) {
                    self.told_to_delete.insert(key.clone());
                }
            }
            Answer::NotFound => {
                let now = Instant::now();
                self.not_found.entry(key.clone()).or_default().push(now);
            }
            Answer::Empty => {}
        }
    }

    /// A state reaches the process, whose cursor is this far.
    pub(crate) fn receive(&mut self, state: &State, cursor: u64) {
        if matches!(state.change, Ok(Change::Delete)) {
            self.told_to_delete.insert(state.key.clone());
        }
        self.spoken_of.insert(state.key.clone(), Instant::now());
        let wants = wanted(&state.change);
        if let ReceivedWant::Apply(stamp) = wants {
            self.by_stream.insert((state.key.clone(), stamp));
        }
        let received = self.received.entry(state.key.clone()).or_default();
        if let ReceivedWant::Apply(stamp) = wants
            && received.iter().any(|known| known.version > state.version)
            && received.iter().all(|known| known.version != state.version)
        {
            self.outdated.insert((state.key.clone(), stamp));
        }
        let controller = controller_of(&state.key);
        let highest = self.highest.entry(controller).or_default();
        *highest = state.version.max(*highest);
        // What becomes visible behind the cursor cannot hold it back, nor behind where it may be
        // by the time the message is read.
        let is_late = self.is_disordered && state.version < *highest;
        if state.version <= cursor || is_late {
            return;
        }
        received.push(Received {
            version: state.version,
            wants,
        });
        if received.len() > 32 {
            received.remove(0);
        }
    }

    /// S3: a stream is opened behind this version.
    pub(crate) fn judge_cursor(&mut self, admin: &Admin, controller: Controller, cursor: u64) {
        let mut ahead = None;
        let mine = |key: &ObjectKey| controller_of(key) == controller;
        for (key, received) in self.received.iter().filter(|(key, _)| mine(key)) {
            let passed = received.iter().filter(|state| state.version <= cursor);
            let Some(newest) = passed.max_by_key(|state| state.version) else {
                continue;
            };
            let mut covering = received
                .iter()
                .filter(|state| state.version >= newest.version);
            if !covering.any(|state| self.is_applied(admin, key, state)) {
                ahead = Some(format!(
                    "a stream begins behind {cursor}, and {key} in version {} was not applied",
                    newest.version
                ));
            }
        }
        if let Some(text) = ahead {
            self.violate("S3", text);
        }
    }

    fn is_applied(&self, admin: &Admin, key: &ObjectKey, state: &Received) -> bool {
        let version = state.version;
        match state.wants {
            ReceivedWant::Apply(stamp) => self.reached.get(key).is_some_and(|at| *at >= stamp),
            ReceivedWant::Delete if self.deleted.get(key).is_some_and(|at| *at >= version) => true,
            ReceivedWant::Delete => {
                let live = admin.get(&primary(key));
                live.is_none_or(|live| is_terminating(&live) || !is_ours(&live))
            }
            // "Not found", said twice, took its place.
            ReceivedWant::Poison => self.not_found.contains_key(key),
        }
    }

    /// S10: a report is taken by the control plane.
    pub(crate) fn judge_report(&mut self, report: &Report) {
        if let Report::Health { key, .. } = report {
            let known = self.health.get(key);
            if !known.is_some_and(|known| known.contains(report)) {
                self.violate("S10", format!("{key}: {report:?} was never so"));
            }
        }
        let Report::Instances { key, instances } = report else {
            return;
        };
        let mut made_up = None;
        for instance in instances {
            let is_running = instance.status == InstanceStatus::Running;
            let is_so = self.pods.get(&instance.pod).is_some_and(|known| {
                known.iter().any(|(running, ip)| {
                    *running == is_running && instance.address.starts_with(&ip.replace('.', "-"))
                })
            });
            if !is_so {
                made_up = Some(format!("{key}: {instance:?} was never so"));
            }
        }
        if let Some(text) = made_up {
            self.violate("S10", text);
        }
    }
}
