//! Watches: every watcher reads the history at its own place; nothing is queued for it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use krane_domain::kinds::WatchSpec;
use krane_domain::object::Resource;
use krane_ports::{Item, WatchEnd, WatchEvent};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::clock::Clock;
use super::refusals::{self, Status};
use super::selectors::Selector;
use super::store::{Event, Version};
use super::view::View;
use super::world::World;
use crate::bell::Listener;

/// Bookmarks come this often, and once shortly before the end.
const BOOKMARKS: Duration = Duration::from_secs(60);
const LAST_BOOKMARK: Duration = Duration::from_millis(1500);

/// Starts a watch; the server closes it after `limit`.
pub(super) fn open(
    world: &Arc<Mutex<World>>,
    view: &View,
    spec: &WatchSpec,
    version: &str,
    limit: Duration,
) -> Result<BoxStream<'static, WatchEvent>, Status> {
    let selector = Selector::parse(spec)?;
    if version.is_empty() {
        return Ok(stream::iter([WatchEvent::Ended(WatchEnd::Expired)]).boxed());
    }
    let at: u64 = version
        .parse()
        .map_err(|_| refusals::garbage_version(version))?;
    let kind = spec.resource.kind();
    let locked = world.lock();
    if locked.absent_kinds.contains(kind) {
        return Err(refusals::kind_missing());
    }
    let now = Clock::now();
    let watcher = Watcher {
        resource: spec.resource,
        namespace: spec.namespace,
        selector,
        view: view.clone(),
        at,
        removals: locked.removals.get(kind).copied().unwrap_or_default(),
        cuts: locked.cuts,
        bookmark: now + BOOKMARKS.min(limit.saturating_sub(LAST_BOOKMARK)),
        end: now + limit,
        news: locked.news(),
        world: Arc::clone(world),
        is_over: false,
    };
    drop(locked);
    Ok(stream::unfold(watcher, Watcher::step).boxed())
}

struct Watcher {
    resource: Resource,
    namespace: Option<&'static str>,
    selector: Selector,
    view: View,
    /// Everything up to this version has been told, or was known before. One that is yet to come
    /// makes the watch silent until it is passed.
    at: u64,
    removals: u64,
    cuts: u64,
    bookmark: Instant,
    end: Instant,
    news: Listener,
    world: Arc<Mutex<World>>,
    is_over: bool,
}

enum Look {
    Tell(WatchEvent),
    Wait,
}

impl Watcher {
    async fn step(mut self) -> Option<(WatchEvent, Self)> {
        if self.is_over {
            return None;
        }
        loop {
            self.news.catch_up();
            match self.look() {
                Look::Tell(event) => {
                    self.is_over = matches!(event, WatchEvent::Ended(_));
                    return Some((event, self));
                }
                Look::Wait => self.wait().await,
            }
        }
    }

    async fn wait(&mut self) {
        let due = self.bookmark.min(self.end);
        tokio::select! {
            biased;
            () = self.news.rung() => {}
            () = self.view.changed() => {}
            () = pause_until(due) => {}
        }
    }

    fn look(&mut self) -> Look {
        let world = Arc::clone(&self.world);
        let world = world.lock();
        let now = Clock::now();
        let kind = self.resource.kind();
        if world.cuts != self.cuts {
            let text = "the connection was reset".to_owned();
            return Look::Tell(WatchEvent::Ended(WatchEnd::Failed(text)));
        }
        let until = self.view.horizon(world.store.version());
        if self.at <= until {
            loop {
                let event = match world.store.next_event(self.at, until) {
                    Ok(Some(event)) => Arc::clone(event),
                    Ok(None) => break,
                    Err(_) => return Look::Tell(WatchEvent::Ended(WatchEnd::Expired)),
                };
                self.at = event.version;
                if let Some(event) = self.event(&event) {
                    return Look::Tell(event);
                }
            }
            let removals = world.removals.get(kind).copied().unwrap_or_default();
            if removals != self.removals {
                return Look::Tell(WatchEvent::Ended(WatchEnd::Closed));
            }
        }
        if now >= self.end {
            return Look::Tell(WatchEvent::Ended(WatchEnd::Closed));
        }
        if now >= self.bookmark {
            let left = (self.end - LAST_BOOKMARK).max(now + Duration::from_millis(1));
            self.bookmark = if now + BOOKMARKS < left {
                now + BOOKMARKS
            } else {
                left
            };
            if now + LAST_BOOKMARK >= self.end {
                self.bookmark = self.end;
            }
            if self.at <= until {
                self.at = until;
                return Look::Tell(WatchEvent::Bookmark(self.at.to_string()));
            }
        }
        Look::Wait
    }

    /// What this watch tells of an event.
    fn event(&self, event: &Event) -> Option<WatchEvent> {
        let is_meant = event.key.kind == self.resource.kind()
            && self
                .namespace
                .is_none_or(|wanted| *event.key.namespace == *wanted);
        if !is_meant {
            return None;
        }
        let selected = |version: &Option<Arc<Version>>| {
            let version = version.as_ref();
            version.is_some_and(|version| self.selector.matches(version))
        };
        if selected(&event.after) {
            return Some(self.told(event.after.as_ref()?, WatchEvent::Applied));
        }
        // It is gone, or no longer selected: both look the same, with what it was before.
        if selected(&event.before) {
            return Some(self.told(event.last_seen()?, WatchEvent::Deleted));
        }
        None
    }

    fn told(&self, version: &Version, wrap: fn(Item) -> WatchEvent) -> WatchEvent {
        match version.item(self.resource) {
            Ok(item) => wrap(item),
            Err(problem) => WatchEvent::Undecodable(problem.to_string()),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the stream of a server of the outside world"
)]
async fn pause_until(due: Instant) {
    sleep_until(due).await;
}
