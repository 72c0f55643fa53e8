//! The cluster is restored from a backup.

use krane_ports::{WatchEnd, WatchEvent};

use super::FakeCluster;
use super::Past;

impl FakeCluster {
    /// The cluster is as it was then: what came later is gone, and versions count from there, or
    /// from `bump` further. All watches break; one from an earlier version has to list.
    pub(crate) fn restore(&self, past: &Past, bump: u64) {
        let mut world = self.world.lock();
        world.objects = past.objects.clone();
        world.pods = past.pods.clone();
        world.version = past.version + bump;
        world.oldest = world.version;
        world.history.clear();
        for (_, watcher) in std::mem::take(&mut world.watchers) {
            let cut = WatchEnd::Failed("cut".to_owned());
            let _ = watcher.send(WatchEvent::Ended(cut));
        }
    }

    /// So many changes of objects that nobody here follows.
    pub(crate) fn skip_versions(&self, count: u64) {
        self.world.lock().version += count;
    }
}
