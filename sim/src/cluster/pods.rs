//! Scheduler, kubelets and node controller: the life of a pod after it was created.

mod behaviour;
mod secrets;
mod status;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use behaviour::Behaviour;

use super::agenda::{PodStep, Task};
use super::store::{Event, Key, Version};
use super::world::World;

const KUBELET: &str = "kubelet";
const SCHEDULER: &str = "kube-scheduler";

/// Nodes know how many pods they have: to count them at each would take the longer, the more there are.
pub(super) fn count(world: &mut World, event: &Event) {
    if event.key.kind != "Pod" {
        return;
    }
    let node_of = |pod: &Option<Arc<Version>>| {
        let node = pod.as_ref()?.value()["spec"]["nodeName"].as_str()?;
        Some(node.to_owned())
    };
    let (before, after) = (node_of(&event.before), node_of(&event.after));
    if before != after {
        world.nodes.move_pod(before.as_deref(), after.as_deref());
    }
}

/// A pod came, got a node, or is to go; or a Secret came that one waits for.
pub(super) fn notice(world: &mut World, event: &Event) {
    if event.key.kind == "Secret" && event.before.is_none() {
        secrets::wake(world, &event.key);
    }
    let Some(pod) = event.after.as_ref().filter(|_| event.key.kind == "Pod") else {
        return;
    };
    let before = event.before.as_ref();
    let node = |pod: &Version| pod.value()["spec"]["nodeName"].as_str().map(str::to_owned);
    let uid: Arc<str> = pod.uid().into();
    let pace = world.options.pace.clone();
    let mut next = |about: Duration, step: PodStep| {
        world.later(about, Task::Pod(event.key.clone(), Arc::clone(&uid), step));
    };
    if before.is_none() && node(pod).is_none() {
        next(pace.schedule, PodStep::Bind);
    } else if node(pod).is_some() && before.and_then(|before| node(before)).is_none() {
        next(pace.start, PodStep::Start);
    }
    if pod.is_terminating() && before.is_none_or(|before| !before.is_terminating()) {
        next(pace.stop, PodStep::End);
    }
}

/// The next step in the life of a pod, if it is still the same one.
pub(super) fn step(world: &mut World, key: &Key, uid: &Arc<str>, step: PodStep) {
    let pod = world.store.get(key).cloned();
    let Some(pod) = pod.filter(|pod| *pod.uid() == **uid) else {
        return;
    };
    let behaviour = Behaviour::of(pod.value());
    let node = pod.value()["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let is_lost = world.nodes.is_lost(&node);
    let next = |world: &mut World, about: Duration, step: PodStep| {
        world.later(about, Task::Pod(key.clone(), Arc::clone(uid), step));
    };
    let pace = world.options.pace.clone();
    match step {
        PodStep::Bind if pod.is_terminating() => {}
        PodStep::Bind => {
            if !bind(world, key) {
                next(
                    world,
                    pace.schedule.max(Duration::from_secs(1)),
                    PodStep::Bind,
                );
            }
        }
        PodStep::End => {
            if !is_lost && behaviour != Behaviour::Stuck {
                end(world, key, &pod);
            }
        }
        _ if is_lost || pod.is_terminating() || status::is_over(pod.value()) => {}
        PodStep::Start => {
            if !start(world, key, behaviour) {
                return;
            }
            match behaviour {
                Behaviour::Well => next(world, pace.ready, PodStep::BecomeReady),
                Behaviour::Slow => next(world, pace.ready * 3, PodStep::BecomeReady),
                Behaviour::Fail => next(world, pace.ready, PodStep::Fail),
                Behaviour::Crash => next(world, pace.restart, PodStep::Restart),
                Behaviour::Pending
                | Behaviour::ImagePull
                | Behaviour::Unready
                | Behaviour::Stuck
                | Behaviour::Manual => {}
            }
            if behaviour == Behaviour::Stuck {
                next(world, pace.ready, PodStep::BecomeReady);
            }
        }
        PodStep::BecomeReady if secrets::is_waiting(&pod) => {}
        PodStep::BecomeReady => world.set_ready(key, true),
        PodStep::Restart => {
            world.write_pod(key, status::restart);
            if behaviour == Behaviour::Crash {
                next(world, pace.restart, PodStep::Restart);
            } else {
                next(world, pace.ready, PodStep::BecomeReady);
            }
        }
        PodStep::Fail => {
            world.write_pod(key, |status, now| status::fail(status, "Error", "", now));
        }
    }
}

fn bind(world: &mut World, key: &Key) -> bool {
    let Some(node) = world.nodes.least() else {
        world.write_pod(key, status::unschedulable);
        return false;
    };
    let _ = world.change(key, SCHEDULER, "binding", |pod| {
        pod["spec"]["nodeName"] = json!(&*node);
        status::set(&mut pod["status"], "PodScheduled", true, "", "");
    });
    true
}

/// Whether its containers run now.
fn start(world: &mut World, key: &Key, behaviour: Behaviour) -> bool {
    let pod = world.store.get(key).cloned();
    let Some(pod) = pod.filter(|_| behaviour != Behaviour::Pending) else {
        return false;
    };
    let missing = secrets::missing(world, key, pod.value());
    let known = &pod.value()["status"]["podIP"];
    if missing.is_some() && known.is_string() {
        return false;
    }
    let node = pod.value()["spec"]["nodeName"].as_str().unwrap_or_default();
    let address = match known.as_str() {
        Some(known) => known.to_owned(),
        None => world.nodes.address(node),
    };
    let spec = pod.value()["spec"].clone();
    world.write_pod(key, |status, now| {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
        status["hostIP"] = json!("127.0.0.1");
        status["startTime"] = json!(now);
        status::started(status, &spec, behaviour, now);
        if let Some(name) = &missing {
            status::wait_for_secret(status, name);
        }
    });
    missing.is_none()
}

/// The containers have ended; the kubelet lets the pod go.
fn end(world: &mut World, key: &Key, pod: &Version) {
    if !status::is_over(pod.value()) {
        world.write_pod(key, |status, now| {
            status::set_ready(status, false, now);
            status["phase"] = json!("Succeeded");
        });
    }
    if let Some(pod) = world.store.get(key).cloned() {
        world.delete_pod(key, &pod, Some(0));
    }
}

/// The pods of a node that says nothing any more are taken for not ready.
pub(super) fn doubt_node(world: &mut World, node: &str) {
    if !world.nodes.is_lost(node) {
        return;
    }
    for key in world.pods_on(node) {
        world.set_ready(&key, false);
    }
    let evict = world.options.pace.evict;
    world.later(evict, Task::EvictNode(node.into()));
}

/// They are deleted; nobody is there to say that they ended.
pub(super) fn evict_node(world: &mut World, node: &str) {
    if !world.nodes.is_lost(node) {
        return;
    }
    for key in world.pods_on(node) {
        if let Some(pod) = world.store.get(&key).cloned() {
            world.delete_pod(&key, &pod, None);
        }
    }
}

impl World {
    pub(super) fn pods_on(&self, node: &str) -> Vec<Key> {
        let pods = self.store.of_kind("Pod", None);
        pods.filter(|(_, pod)| pod.value()["spec"]["nodeName"] == node)
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// A node's write of a pod's status.
    pub(super) fn write_pod(&mut self, key: &Key, change: impl FnOnce(&mut Value, &str)) {
        let now = self.clock.timestamp();
        let _ = self.change_status(key, KUBELET, |status| change(status, &now));
    }

    pub(super) fn set_ready(&mut self, key: &Key, is_ready: bool) {
        self.write_pod(key, |status, now| status::set_ready(status, is_ready, now));
    }

    /// A container ends badly and starts again.
    pub(super) fn crash(&mut self, key: &Key, uid: &Arc<str>) {
        self.write_pod(key, status::crash);
        let about = self.options.pace.restart;
        self.later(
            about,
            Task::Pod(key.clone(), Arc::clone(uid), PodStep::Restart),
        );
    }

    pub(super) fn evict(&mut self, key: &Key) {
        let text = "The node was low on resource: memory.";
        self.write_pod(key, |status, now| {
            status::fail(status, "Evicted", text, now);
        });
    }

    /// Marks a pod for its node to end it, or removes it when there is nothing to end.
    pub(super) fn delete_pod(&mut self, key: &Key, live: &Arc<Version>, grace: Option<u64>) {
        let spec = &live.value()["spec"];
        let own = spec["terminationGracePeriodSeconds"].as_u64().unwrap_or(30);
        let is_over = status::is_over(live.value());
        let is_bound = spec["nodeName"].is_string();
        let grace = if is_bound && !is_over {
            grace.unwrap_or(own)
        } else {
            0
        };
        let known = live.metadata("deletionGracePeriodSeconds").as_u64();
        if known.is_none_or(|known| grace < known) {
            let mut object = live.object.clone();
            let metadata = &mut object.value["metadata"];
            let at = self.clock.timestamp_in(Duration::from_secs(grace));
            metadata["deletionTimestamp"] = json!(at);
            metadata["deletionGracePeriodSeconds"] = json!(grace);
            let generation = metadata["generation"].as_u64().unwrap_or(1);
            if known.is_none() {
                metadata["generation"] = json!(generation + 1);
            }
            self.commit(key.clone(), object);
        }
        let finalizers = live.metadata("finalizers").as_array();
        if grace == 0 && finalizers.is_none_or(Vec::is_empty) {
            self.remove(key);
        }
    }
}

impl World {
    /// A node is back: its kubelet goes on with its pods.
    pub(super) fn resume_pods(&mut self, node: &str) {
        for key in self.pods_on(node) {
            let Some(pod) = self.store.get(&key).cloned() else {
                continue;
            };
            let step = match Behaviour::of(pod.value()) {
                _ if pod.is_terminating() => PodStep::End,
                _ if pod.value()["status"]["podIP"].is_null() => PodStep::Start,
                _ if secrets::is_waiting(&pod) => PodStep::Start,
                Behaviour::Well | Behaviour::Slow | Behaviour::Stuck => PodStep::BecomeReady,
                Behaviour::Pending
                | Behaviour::ImagePull
                | Behaviour::Unready
                | Behaviour::Crash
                | Behaviour::Fail
                | Behaviour::Manual => continue,
            };
            self.later(
                Duration::from_millis(100),
                Task::Pod(key, pod.uid().into(), step),
            );
        }
    }
}
