//! What lists and watches show, and when they do not show what is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_domain::pod::PodDigest;
use krane_ports::{Item, WatchEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{FakeCluster, World};

type Objects = BTreeMap<ObjectRef, LiveObject>;
type Pods = BTreeMap<Arc<str>, PodDigest>;
type Watcher = (Resource, UnboundedSender<WatchEvent>);

/// The cluster as it was.
#[derive(Clone)]
pub(crate) struct Past {
    pub(super) objects: Objects,
    pub(super) pods: Pods,
    pub(super) version: u64,
}

/// What a server shows.
#[derive(Default)]
pub(super) enum Sight {
    /// What is there.
    #[default]
    Clear,
    Lagging(Lagging),
    /// Whatever version a watch starts from is too old.
    TooOld,
}

/// A server behind: lists show the past, watches nothing before it catches up.
pub(super) struct Lagging {
    past: Past,
    waiting: Vec<(u64, Watcher)>,
}

impl Lagging {
    pub(super) fn wait(
        &mut self,
        resource: Resource,
        from: u64,
        sender: UnboundedSender<WatchEvent>,
    ) {
        self.waiting.push((from, (resource, sender)));
    }
}

impl FakeCluster {
    pub(crate) fn now(&self) -> Past {
        let world = self.world.lock();
        Past {
            objects: world.objects.clone(),
            pods: world.pods.clone(),
            version: world.version,
        }
    }

    /// From now on lists and watches are answered by a server that is behind.
    pub(crate) fn lag(&self, past: Past) {
        let waiting = Vec::new();
        self.world.lock().sight = Sight::Lagging(Lagging { past, waiting });
    }

    pub(crate) fn catch_up(&self) {
        let mut world = self.world.lock();
        let Sight::Lagging(lagging) = std::mem::take(&mut world.sight) else {
            return;
        };
        for (from, (resource, sender)) in lagging.waiting {
            let news = world.history.iter();
            let news = news.filter(|(version, of, _)| *version > from && *of == resource);
            for (_, _, event) in news {
                let _ = sender.send(event.clone());
            }
            world.watchers.push((resource, sender));
        }
    }

    /// The connections of all present watches die without a word; new ones work.
    pub(crate) fn cut_watches_silently(&self) {
        let mut world = self.world.lock();
        let silent = std::mem::take(&mut world.watchers);
        world.silent.extend(silent);
    }

    /// Every watch, whatever it starts from, is told that its version is too old.
    pub(crate) fn expire_watches(&self, are_versions_old: bool) {
        self.world.lock().sight = if are_versions_old {
            Sight::TooOld
        } else {
            Sight::Clear
        };
    }

    /// When each kind was listed or watched, in the order of it.
    pub(crate) fn looks(&self) -> Vec<(Resource, Instant)> {
        self.world.lock().looks.clone()
    }

    /// The most calls that were under way at once, lists and watches apart.
    pub(crate) fn most_calls(&self) -> usize {
        self.world.lock().most_calls
    }

    pub(crate) fn objects(&self) -> Vec<LiveObject> {
        self.world.lock().objects.values().cloned().collect()
    }

    /// A pod gets other limits while it runs.
    pub(crate) fn resize_pod(&self, name: &str, cpu_millicores: i64, memory_mib: i64) {
        let mut world = self.world.lock();
        world.version += 1;
        let version = world.version;
        let pod = world.pods.get_mut(name).expect("there is such a pod");
        pod.resource_version = version;
        (pod.cpu_millicores, pod.memory_mib) = (cpu_millicores, memory_mib);
        let event = WatchEvent::Applied(Item::Pod(pod.clone()));
        world.tell(Resource::Pod, &event);
    }

    /// A pod is gone.
    pub(crate) fn remove_pod(&self, name: &str) {
        let mut world = self.world.lock();
        world.version += 1;
        let mut pod = world.pods.remove(name).expect("there is such a pod");
        pod.resource_version = world.version;
        world.tell(Resource::Pod, &WatchEvent::Deleted(Item::Pod(pod)));
    }

    /// Somebody deletes an object and makes it again as it was.
    pub(super) fn replace(&self, reference: &ObjectRef) {
        let mut world = self.world.lock();
        let mut live = world.objects.get(reference).cloned();
        let live = live.as_mut().expect("there is such an object");
        world.delete(reference);
        world.version += 1;
        live.uid = world.next_uid();
        live.resource_version = world.version;
        world.put(live.clone());
    }
}

impl World {
    /// What a list shows, and as of which version.
    pub(super) fn shown(&self) -> (&Objects, &Pods, u64) {
        match &self.sight {
            Sight::Lagging(Lagging { past, .. }) => (&past.objects, &past.pods, past.version),
            Sight::Clear | Sight::TooOld => (&self.objects, &self.pods, self.version),
        }
    }
}
