//! What goes wrong, as the tests want it.

use std::time::Duration;

use krane_domain::object::Resource;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{WatchEnd, WatchEvent};

use super::{FakeCluster, World};

/// What RBAC answers a list or a watch.
pub(crate) fn forbidden(resource: Resource) -> Refusal {
    let plural = resource.plural();
    Refusal {
        class: RefusalClass::Configuration,
        code: 403,
        message: format!("{plural} is forbidden: cannot list resource \"{plural}\""),
        retry_after: None,
    }
}

/// What a server, or the way to it, answers that may ask to wait.
pub(crate) fn unavailable(code: u16, retry_after: Option<Duration>) -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code,
        message: "as the test wants it".to_owned(),
        retry_after,
    }
}

impl World {
    pub(super) fn refused_watch(&self, resource: Resource) -> Option<Refusal> {
        let (kinds, refusal) = self.refused_watches.as_ref()?;
        kinds.contains(&resource).then(|| refusal.clone())
    }
}

impl FakeCluster {
    /// Watches of these kinds are not opened any more; lists of them work, and open watches stay.
    pub(crate) fn refuse_watches(&self, of: &[Resource], refusal: Refusal) {
        self.world.lock().refused_watches = Some((of.to_vec(), refusal));
    }

    pub(crate) fn open_watches(&self) {
        self.world.lock().refused_watches = None;
    }

    pub(crate) fn fail_lists(&self, fail: bool) {
        self.world.lock().lists_fail = fail;
    }

    /// Lists of this kind are refused; the server asks to wait this long.
    pub(crate) fn refuse_lists_of(&self, refused: Option<(Resource, Duration)>) {
        self.world.lock().refused_list = refused;
    }

    pub(crate) fn set_missing(&self, resource: Resource, is_missing: bool) {
        let mut world = self.world.lock();
        world.missing.retain(|known| *known != resource);
        if is_missing {
            world.missing.push(resource);
        }
    }

    /// Whether krane may list and watch this kind. Watches that are open stay open, as with RBAC.
    pub(crate) fn forbid(&self, resource: Resource, is_forbidden: bool) {
        let mut world = self.world.lock();
        if is_forbidden {
            world.forbidden.insert(resource);
        } else {
            world.forbidden.remove(&resource);
        }
    }

    pub(crate) fn end_watches(&self, end: &WatchEnd) {
        for (_, watcher) in self.world.lock().watchers.drain(..) {
            let _ = watcher.send(WatchEvent::Ended(end.clone()));
        }
    }

    /// Watches stay open and silent, and so do new ones until the next list.
    pub(crate) fn forget_watches(&self) {
        let mut world = self.world.lock();
        world.is_silent = true;
        let silent = std::mem::take(&mut world.watchers);
        world.silent.extend(silent);
    }

    /// Reading the next watch panics.
    pub(crate) fn panic_in_next_watch(&self) {
        self.world.lock().watch_panics = true;
    }

    /// The next apply panics.
    pub(crate) fn panic_in_next_apply(&self) {
        self.world.lock().apply_panics = true;
    }
}
