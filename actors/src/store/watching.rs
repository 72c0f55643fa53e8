//! Lists and watches of the cluster, and what they show.

use std::time::Duration;

use krane_domain::ids::Moment;
use krane_domain::object::Resource;
use krane_ports::{Item, Listed};

use super::{Memory, Store, WatchFailure};

/// Where the watch of a kind goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchStart {
    /// The version of the first list, if no watch has gone on from it yet.
    pub(crate) listed: Option<String>,
    /// Whether the last list or watch of this kind failed.
    pub(crate) is_failing: bool,
}

impl Store {
    /// Whether the first list of this kind was made before one of another kind failed, and not
    /// long ago.
    pub(crate) fn is_listed_already(&self, resource: Resource, now: Moment) -> bool {
        self.with(|memory| memory.is_listed_already(resource, now))
    }

    /// How long the first list of this kind has to wait, because the API server asked for it.
    pub(crate) fn list_wait(&self, resource: Resource, now: Moment) -> Duration {
        self.with(|memory| memory.list_wait(resource, now))
    }

    /// A complete list of this kind is about to be asked for: what is shown of it from here on is
    /// newer.
    pub(crate) fn begin_list(&self, resource: Resource) {
        self.with(|memory| memory.view.list_begins(resource));
    }

    /// The first complete list of this kind: its watch goes on from there.
    pub(crate) fn receive_first_list(&self, resource: Resource, listed: Listed, now: Moment) {
        self.with(|memory| {
            let version = listed.resource_version.clone();
            memory.listed.insert(resource, version);
            memory.note_first_list(resource, None, now);
            memory.replace(resource, listed, now);
            memory.broken_watches.remove(&resource);
        });
    }

    /// The first list of this kind failed; it is not made again before `retry_after` is over.
    pub(crate) fn note_first_list_failed(
        &self,
        resource: Resource,
        failure: WatchFailure,
        retry_after: Duration,
        now: Moment,
    ) {
        self.with(|memory| {
            memory.note_first_list(resource, Some(retry_after), now);
            memory.watch_failed(resource, failure, now);
        });
    }

    /// The same, because krane may not list this kind. Returns whether that is news.
    pub(crate) fn note_first_list_forbidden(
        &self,
        resource: Resource,
        failure: WatchFailure,
        retry_after: Duration,
        now: Moment,
    ) -> bool {
        self.with(|memory| {
            memory.note_first_list(resource, Some(retry_after), now);
            memory.kind_is_forbidden(resource, failure, now)
        })
    }

    /// The watch of this kind is about to begin. The first list is handed out once: whoever comes
    /// later has to list again.
    pub(crate) fn begin_watch(&self, resource: Resource) -> WatchStart {
        self.with(|memory| WatchStart {
            is_failing: memory.broken_watches.contains_key(&resource),
            listed: memory.listed.remove(&resource),
        })
    }

    /// A complete list replaces what was known of this kind.
    pub(crate) fn replace_objects(&self, resource: Resource, listed: Listed, now: Moment) {
        self.with(|memory| memory.replace(resource, listed, now));
    }

    /// A watch showed an object or a pod.
    pub(crate) fn upsert_object(&self, item: Item, now: Moment) {
        self.with(|memory| memory.see(item, now));
    }

    /// An object or a pod left its watch.
    pub(crate) fn remove_object(&self, item: &Item, now: Moment) {
        self.with(|memory| memory.lose(item, now));
    }

    /// The cluster was restored from a backup: what was learned from versions, uids and answers of
    /// before is forgotten (D43).
    pub(crate) fn note_cluster_restored(&self) {
        self.with(Memory::cluster_restored);
    }

    /// The API server does not know this kind: nothing of it is there. Returns whether that is
    /// news.
    pub(crate) fn note_kind_missing(&self, resource: Resource, now: Moment) -> bool {
        self.with(|memory| memory.kind_is_missing(resource, now))
    }

    /// krane may not list this kind: what was seen of it is old. Returns whether that is news.
    pub(crate) fn note_kind_forbidden(
        &self,
        resource: Resource,
        failure: WatchFailure,
        now: Moment,
    ) -> bool {
        self.with(|memory| memory.kind_is_forbidden(resource, failure, now))
    }

    /// A list or watch of this kind failed. Returns whether it worked before.
    pub(crate) fn note_watch_failed(
        &self,
        resource: Resource,
        failure: WatchFailure,
        now: Moment,
    ) -> bool {
        self.with(|memory| memory.watch_failed(resource, failure, now))
    }

    /// The watch of this kind works again: what failed for a passing reason is tried again now.
    pub(crate) fn note_watch_recovered(&self, resource: Resource, now: Moment) {
        self.with(|memory| {
            memory.broken_watches.remove(&resource);
            memory.backlog.retry_transient(now);
        });
    }
}
