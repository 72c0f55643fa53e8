//! One list-and-watch loop.
//!
//! kube's own `watcher` hides bookmarks and silent reconnects; this one uses them as signs of
//! life, so that a connection that went silent, or a resource version from the future, is noticed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::StreamExt;
use krane_domain::kinds::WatchSpec;
use krane_domain::planted::{Bug, is_planted};
use krane_domain::refusal::{Refusal, RefusalClass};
use tokio::time::Instant;

use super::WatchMessage;
use crate::address::Own;
use crate::chance::Chance;
use crate::outage;
use crate::ports::{Cluster, Item, WatchEnd, WatchEvent};
use crate::status::StatusBoard;
use crate::store::Store;
use crate::store::WatchFailure;

/// A watch without any event or bookmark for this long is dead: the server ends each after 80 s
/// and sends a bookmark before that.
const IDLE: Duration = Duration::from_secs(85);
/// Silent periods in a row before everything is listed afresh: the resource version may be one
/// that the server has never reached.
const IDLE_BEFORE_RELIST: u32 = 2;
/// Failures in a row to open a watch before everything is listed afresh.
const FAILURES_BEFORE_RELIST: u32 = 5;
/// A list this soon after the last one waits a moment.
const SOON: Duration = Duration::from_secs(5);
/// A watch that failed and was opened again works when it has been open for this long: in a quiet
/// cluster its first event may be a minute away.
const SETTLED: Duration = Duration::from_secs(2);
/// How often a kind the API server does not know is looked for.
const KIND_MISSING: Duration = Duration::from_secs(20);

/// Lists everything a controller watches, once, into its store. A controller starts only after
/// this: an unknown cluster must not look like an empty one. A kind that the API server does not
/// know counts as listed and empty.
pub async fn first_lists(
    store: &Store,
    cluster: &dyn Cluster,
    board: &StatusBoard,
) -> Result<(), String> {
    let specs = store.controller().watches(store.rules());
    let lists = specs
        .iter()
        .map(|spec| async move { (spec, cluster.list(spec).await) });
    let mut failed = None;
    for (spec, listed) in futures::future::join_all(lists).await {
        let resource = spec.resource;
        match listed {
            Ok(listed) => store.with(|memory| {
                memory
                    .listed
                    .insert(resource, listed.resource_version.clone());
                memory.replace(resource, listed, board.now());
            }),
            Err(refusal) if refusal.class == RefusalClass::KindMissing => {
                store.with(|memory| memory.kind_is_missing(resource, board.now()));
            }
            Err(refusal) => {
                let kinds = resource.plural();
                failed
                    .get_or_insert_with(|| format!("the first list of {kinds} failed: {refusal}"));
                let failure = failure(&refusal);
                store.with(|memory| memory.watch_failed(resource, failure, board.now()));
            }
        }
    }
    if failed.is_none() {
        store.listed();
    }
    outage::look(store, board);
    failed.map_or(Ok(()), Err)
}

/// What a refused list or watch is remembered as.
fn failure(refusal: &Refusal) -> WatchFailure {
    WatchFailure {
        is_refused: matches!(
            refusal.class,
            RefusalClass::Configuration | RefusalClass::Unauthenticated
        ),
        text: refusal.to_string(),
    }
}

struct Follower {
    spec: WatchSpec,
    cluster: Arc<dyn Cluster>,
    own: Own<WatchMessage>,
    backoff: ExponentialBackoff,
    listed_at: Option<Instant>,
    is_failing: bool,
    refused_as: Option<RefusalClass>,
    chance: Chance,
}

/// Runs for as long as its actor lives.
pub(super) async fn follow(
    spec: WatchSpec,
    cluster: Arc<dyn Cluster>,
    own: Own<WatchMessage>,
    listed: Option<String>,
    chance: Chance,
) {
    let mut follower = Follower {
        spec,
        cluster,
        own,
        backoff: backoff(),
        listed_at: None,
        is_failing: false,
        refused_as: None,
        chance,
    };
    let mut from = listed;
    loop {
        let version = match from.take() {
            Some(version) => version,
            None => follower.list().await,
        };
        follower.watch(version).await;
    }
}

impl Follower {
    /// A complete list, whatever it takes. Returns where the watch goes on.
    async fn list(&mut self) -> String {
        loop {
            // A server that lists and then refuses the watch must not be flooded.
            let is_again = |at: Instant| at.elapsed() < SOON;
            if self.listed_at.is_some_and(is_again) {
                self.pause_short().await;
            }
            match self.cluster.list(&self.spec).await {
                Ok(listed) => {
                    self.listed_at = Some(Instant::now());
                    let version = listed.resource_version.clone();
                    self.tell(WatchMessage::Listed(self.spec.resource, listed))
                        .await;
                    self.works_again().await;
                    return version;
                }
                Err(refusal) => self.refused(&refusal).await,
            }
        }
    }

    /// Watches from here until everything has to be listed afresh.
    async fn watch(&mut self, mut version: String) {
        let mut idle_periods = 0;
        let mut failures = 0;
        while idle_periods < IDLE_BEFORE_RELIST && failures < FAILURES_BEFORE_RELIST {
            let events = match self.cluster.watch(&self.spec, &version).await {
                Ok(events) => events,
                Err(refusal) if refusal.class == RefusalClass::KindMissing => return,
                Err(refusal) => {
                    failures += 1;
                    self.refused(&refusal).await;
                    continue;
                }
            };
            let mut events = pin!(events);
            let mut is_alive = false;
            let end = loop {
                let patience = if self.is_failing { SETTLED } else { IDLE };
                let Ok(event) = tokio::time::timeout(patience, events.next()).await else {
                    if self.is_failing {
                        self.recovered().await;
                        continue;
                    }
                    is_alive = false;
                    break WatchEnd::Failed(format!("silent for {} s", IDLE.as_secs()));
                };
                match event {
                    Some(WatchEvent::Applied(item)) => {
                        version = version_of(&item);
                        self.tell(WatchMessage::Applied(item)).await;
                    }
                    Some(WatchEvent::Deleted(item)) => {
                        version = version_of(&item);
                        self.tell(WatchMessage::Deleted(item)).await;
                    }
                    Some(WatchEvent::Bookmark(at)) => version = at,
                    Some(WatchEvent::Undecodable(text)) => {
                        self.tell(WatchMessage::Undecodable(self.spec.resource, text))
                            .await;
                    }
                    Some(WatchEvent::Ended(end)) => break end,
                    None => break WatchEnd::Closed,
                }
                is_alive = true;
                idle_periods = 0;
                failures = 0;
                self.recovered().await;
            };
            if !is_alive {
                idle_periods += 1;
            }
            match end {
                WatchEnd::Closed => {
                    // A server that closes at once, again and again, must not be flooded.
                    if !is_alive {
                        self.pause_short().await;
                    }
                }
                WatchEnd::Expired => return,
                WatchEnd::Failed(_) if is_planted(Bug::WatchNotReopened) => {
                    futures::future::pending::<()>().await;
                }
                WatchEnd::Failed(text) => {
                    failures += 1;
                    let is_refused = false;
                    self.failed(WatchFailure { is_refused, text }).await;
                }
            }
        }
    }

    async fn refused(&mut self, refusal: &Refusal) {
        if refusal.class == RefusalClass::KindMissing {
            self.tell(WatchMessage::KindMissing(self.spec.resource))
                .await;
            pause(KIND_MISSING.mul_f64(0.75 + self.chance.unit() / 2.0)).await;
        } else {
            // Another answer than before: a server that has just started may refuse for a moment.
            if self.refused_as.replace(refusal.class) != Some(refusal.class) {
                self.backoff = backoff();
            }
            self.failed(failure(refusal)).await;
        }
    }

    async fn failed(&mut self, failure: WatchFailure) {
        self.is_failing = true;
        self.tell(WatchMessage::Failed(self.spec.resource, failure))
            .await;
        self.pause_short().await;
    }

    /// A watch is alive.
    async fn recovered(&mut self) {
        self.backoff = backoff();
        self.works_again().await;
    }

    async fn works_again(&mut self) {
        self.refused_as = None;
        if std::mem::take(&mut self.is_failing) {
            self.tell(WatchMessage::Recovered(self.spec.resource)).await;
        }
    }

    async fn pause_short(&mut self) {
        let delay = self.backoff.next().unwrap_or(Duration::from_secs(5));
        // Half fixed, half random: loops that failed together do not come back in step.
        pause(delay.mul_f64(0.5 + self.chance.unit() / 2.0)).await;
    }

    /// Waits for room in the actor's mailbox. When the actor is gone this loop ends with it.
    async fn tell(&self, message: WatchMessage) {
        self.own.hand_in(message).await;
    }
}

/// 500 ms doubling to 5 s, for ever.
fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(5))
        .without_max_times()
        .build()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop task of the watch actor, no handler"
)]
async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}

fn version_of(item: &Item) -> String {
    match item {
        Item::Object(live) => live.resource_version.to_string(),
        Item::Pod(pod) => pod.resource_version.to_string(),
    }
}
