//! Secrets that containers take their variables from.

use serde_json::Value;

use crate::cluster::agenda::{PodStep, Task};
use crate::cluster::store::{Key, Version};
use crate::cluster::world::World;

/// The first Secret without which a pod's containers cannot start.
pub(super) fn missing(world: &World, key: &Key, pod: &Value) -> Option<String> {
    let mut names = required(pod);
    let missing = names.find(|name| {
        let secret = Key::new("Secret", &key.namespace, name);
        world.store.get(&secret).is_none()
    });
    missing.map(str::to_owned)
}

fn required(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = pod["spec"]["containers"].as_array();
    let sources = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["envFrom"].as_array());
    sources
        .flatten()
        .map(|source| &source["secretRef"])
        .filter(|reference| reference["optional"] != true)
        .filter_map(|reference| reference["name"].as_str())
}

/// Whether a pod has a node, and its containers wait for a Secret.
pub(super) fn is_waiting(pod: &Version) -> bool {
    let state = &pod.value()["status"]["containerStatuses"][0]["state"];
    state["waiting"]["reason"] == "CreateContainerConfigError"
}

/// A Secret is there now: pods that wait for it try again.
pub(super) fn wake(world: &mut World, secret: &Key) {
    let pods = world.store.of_kind("Pod", Some(&secret.namespace));
    let waiting: Vec<_> = pods
        .filter(|(_, pod)| is_waiting(pod))
        .filter(|(_, pod)| required(pod.value()).any(|name| *name == *secret.name))
        .map(|(key, pod)| (key.clone(), pod.uid().into()))
        .collect();
    let about = world.options.pace.start;
    for (key, uid) in waiting {
        world.later(about, Task::Pod(key, uid, PodStep::Start));
    }
}
