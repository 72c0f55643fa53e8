//! What goes wrong, as the tests want it.

use krane_domain::object::Resource;

use super::FakeCluster;
use crate::ports::{WatchEnd, WatchEvent};

impl FakeCluster {
    pub(crate) fn fail_lists(&self, fail: bool) {
        self.world.lock().lists_fail = fail;
    }

    pub(crate) fn set_missing(&self, resource: Resource, is_missing: bool) {
        let mut world = self.world.lock();
        world.missing.retain(|known| *known != resource);
        if is_missing {
            world.missing.push(resource);
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
