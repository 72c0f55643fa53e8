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
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Item, Listed, WatchEnd, WatchEvent};
use krane_supervision::address::Own;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::WatchMessage;
use crate::chance::Chance;
use crate::outage::ApiServer;
use crate::store::WatchFailure;

/// A watch without any event or bookmark for this long is dead: the server ends each after 80 s
/// and sends a bookmark before that.
const IDLE: Duration = Duration::from_secs(85);
/// Silent periods in a row before everything is listed afresh: the resource version may be one
/// that the server has never reached.
const IDLE_BEFORE_RELIST: u32 = 2;
/// Watches in a row that failed before everything is listed afresh.
const FAILURES_BEFORE_RELIST: u32 = 5;
/// A list this soon after the last one waits a moment. No news ends a pause as short as this.
const SOON: Duration = Duration::from_secs(5);
/// A watch that failed and was opened again works when it has been open for this long: in a quiet
/// cluster its first event may be a minute away.
const SETTLED: Duration = Duration::from_secs(2);
/// How often a kind the API server does not know is looked for.
const KIND_MISSING: Duration = Duration::from_secs(20);
/// How often at least a kind is tried that krane may not list.
const FORBIDDEN: Duration = Duration::from_secs(20);
/// How often at least a kind is listed whole whose lists work and whose watches do not.
const NOT_OPENED: Duration = Duration::from_secs(20);
/// HTTP 429: the API server is there, and busy.
const BUSY: u16 = 429;

/// What a refused list or watch is remembered as.
pub(super) fn failure(refusal: &Refusal) -> WatchFailure {
    WatchFailure {
        is_refused: matches!(
            refusal.class,
            RefusalClass::Configuration | RefusalClass::Unauthenticated
        ),
        text: refusal.to_string(),
    }
}

/// A refused watch says less than a list whether the kind is there and krane may see it.
fn is_for_lists_to_say(refusal: &Refusal) -> bool {
    refusal.is_forbidden() || refusal.class == RefusalClass::KindMissing
}

struct Follower {
    spec: WatchSpec,
    cluster: Arc<dyn Cluster>,
    own: Own<WatchMessage>,
    backoff: ExponentialBackoff,
    listed_at: Option<Instant>,
    is_failing: bool,
    refused_as: Option<RefusalClass>,
    /// How long the server asked to wait.
    asked_for: Duration,
    /// A watch was refused in a way that lists say more about, since one last worked.
    is_only_listed: bool,
    /// The pauses after watches that were not opened, since one last worked.
    while_not_opened: Option<ExponentialBackoff>,
    /// The pauses while krane may not list the kind.
    while_forbidden: Option<ExponentialBackoff>,
    chance: Chance,
    api_server: ApiServer,
    /// The newest version that was seen.
    newest: u64,
    /// Restores of the cluster that its lists are newer than.
    restores: u64,
    /// Restores up to this one ended a pause, and end none any more.
    hurried_for: u64,
}

/// Runs for as long as its actor lives. `is_failing`: the kind is said to be broken, by a former one.
pub(super) async fn follow(
    spec: WatchSpec,
    cluster: Arc<dyn Cluster>,
    own: Own<WatchMessage>,
    listed: Option<String>,
    is_failing: bool,
    chance: Chance,
    api_server: ApiServer,
) {
    let mut follower = Follower {
        spec,
        cluster,
        own,
        backoff: backoff(),
        listed_at: None,
        is_failing,
        refused_as: None,
        asked_for: Duration::ZERO,
        is_only_listed: false,
        while_not_opened: None,
        while_forbidden: None,
        chance,
        newest: 0,
        restores: api_server.restores(),
        hurried_for: 0,
        api_server,
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
    /// A complete list, whatever it takes. Returns where the watch goes on. That the kind works again
    /// is said when a watch is open, too.
    async fn list(&mut self) -> String {
        loop {
            // A server that lists and then refuses the watch must not be flooded.
            let is_again = |at: Instant| at.elapsed() < SOON;
            // After one that was not opened there was a pause already.
            if self.while_not_opened.is_none() && self.listed_at.is_some_and(is_again) {
                self.pause_short().await;
            }
            match self.complete_list().await {
                Ok(listed) => {
                    self.while_forbidden = None;
                    self.listed_at = Some(Instant::now());
                    let version = listed.resource_version.clone();
                    self.tell(WatchMessage::Listed(self.spec.resource, listed))
                        .await;
                    return version;
                }
                Err(refusal) if refusal.is_forbidden() => self.forbidden(&refusal).await,
                Err(refusal) => self.refused(&refusal).await,
            }
        }
    }

    /// Not even a list is allowed. Soon again at first: a server that has just started refuses for a
    /// moment what it allows.
    async fn forbidden(&mut self, refusal: &Refusal) {
        self.is_failing = true;
        self.tell(WatchMessage::Forbidden(
            self.spec.resource,
            failure(refusal),
        ))
        .await;
        let pauses = self
            .while_forbidden
            .get_or_insert_with(|| backoff_up_to(FORBIDDEN));
        let delay = pauses.next().unwrap_or(FORBIDDEN);
        pause(delay.mul_f64(0.5 + self.chance.unit() / 2.0)).await;
    }

    /// A list that may replace everything that is known. One that is older than what was seen is
    /// asked for again: it may come from a server that lags behind. When that is older, too, the
    /// cluster was restored from a backup (D43).
    async fn complete_list(&mut self) -> Result<Listed, Refusal> {
        let restores = self.api_server.restores();
        self.begin_list().await;
        let listed = self.cluster.list(&self.spec).await?;
        if restores != self.restores {
            // Another kind's list showed it.
            self.cluster_restored(restores).await;
            return Ok(listed);
        }
        if !self.is_behind(&listed) {
            return Ok(listed);
        }
        self.begin_list().await;
        let listed = self.cluster.list_anew(&self.spec).await?;
        if self.is_behind(&listed) {
            if self.api_server.note_restored(restores) {
                tracing::warn!(
                    kind = self.spec.resource.kind(),
                    before = self.newest,
                    now = listed.resource_version,
                    "the cluster was restored from a backup: everything is listed again, and what \
                     is desired and missing is recreated"
                );
            }
            self.cluster_restored(self.api_server.restores()).await;
        }
        Ok(listed)
    }

    async fn cluster_restored(&mut self, restores: u64) {
        self.restores = restores;
        self.tell(WatchMessage::Restored(restores)).await;
    }

    /// Whether it is older than what was seen. Versions that are no numbers say nothing.
    fn is_behind(&self, listed: &Listed) -> bool {
        let version = listed.resource_version.parse::<u64>();
        version.is_ok_and(|version| version < self.newest)
    }

    /// What the watch has shown is known before a list is asked for, so that the list is newer.
    async fn begin_list(&self) {
        let (known, is_known) = oneshot::channel();
        self.tell(WatchMessage::Listing(self.spec.resource, known))
            .await;
        // When the actor is gone this loop ends with it.
        let _ = is_known.await;
    }

    /// Watches from here until everything has to be listed afresh.
    async fn watch(&mut self, mut version: String) {
        self.newest = version.parse().unwrap_or(0);
        let mut idle_periods = 0;
        let mut failures = 0;
        let mut is_first = true;
        while idle_periods < IDLE_BEFORE_RELIST && failures < FAILURES_BEFORE_RELIST {
            let events = match self.cluster.watch(&self.spec, &version).await {
                Ok(events) => events,
                // Whether it is there and may be listed decides what is known of it.
                Err(refusal) if !self.is_only_listed && is_for_lists_to_say(&refusal) => {
                    self.is_only_listed = true;
                    return;
                }
                // A complete list is the last thing it needs.
                Err(refusal) if refusal.code == BUSY => {
                    failures += 1;
                    self.refused(&refusal).await;
                    if self.api_server.restores() != self.restores {
                        return;
                    }
                    continue;
                }
                // The server was away. When the cluster was restored meanwhile, a watch from the
                // last version is silent, or tells only what comes after it.
                Err(refusal) => {
                    self.not_opened(&refusal).await;
                    return;
                }
            };
            // The list before it worked, too.
            if std::mem::take(&mut is_first) {
                self.works_again().await;
            }
            let mut events = pin!(events);
            let mut is_alive = false;
            let end = loop {
                let is_settled = self.is_settled();
                let patience = if is_settled { IDLE } else { SETTLED };
                let next = tokio::select! {
                    biased;
                    () = self.api_server.restored_since(self.restores) => return,
                    next = tokio::time::timeout(patience, events.next()) => next,
                };
                let Ok(event) = next else {
                    if !is_settled {
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
                self.newest = version.parse().unwrap_or(self.newest);
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
            self.asked_for = refusal.retry_after.unwrap_or_default();
            self.failed(failure(refusal)).await;
        }
    }

    /// Lists may work all the same: for as long as no watch is open they come ever more rarely, for
    /// each is a complete one.
    async fn not_opened(&mut self, refusal: &Refusal) {
        self.is_failing = true;
        self.tell(WatchMessage::Failed(self.spec.resource, failure(refusal)))
            .await;
        let pauses = self
            .while_not_opened
            .get_or_insert_with(|| backoff_up_to(NOT_OPENED));
        let delay = pauses.next().unwrap_or(NOT_OPENED);
        // Where lists fail, too, this was the first failure of many.
        if self.refused_as.replace(refusal.class) != Some(refusal.class) {
            self.backoff = backoff();
        }
        let delay = delay.max(self.backoff.next().unwrap_or_default());
        let delay = delay.mul_f64(0.5 + self.chance.unit() / 2.0);
        self.rest(delay.max(refusal.retry_after.unwrap_or_default()))
            .await;
    }

    async fn failed(&mut self, failure: WatchFailure) {
        self.is_failing = true;
        self.tell(WatchMessage::Failed(self.spec.resource, failure))
            .await;
        self.pause_short().await;
    }

    /// No trouble is left that a watch has to outlive.
    fn is_settled(&self) -> bool {
        !self.is_failing && !self.is_only_listed && self.while_not_opened.is_none()
    }

    /// A watch is alive.
    async fn recovered(&mut self) {
        self.backoff = backoff();
        self.is_only_listed = false;
        self.while_not_opened = None;
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
        let delay = delay.mul_f64(0.5 + self.chance.unit() / 2.0);
        let asked_for = std::mem::take(&mut self.asked_for);
        self.rest(delay.max(asked_for)).await;
    }

    /// A pause that is long, as a server may ask for, ends when another kind shows that the cluster
    /// was restored (D43): once for each restore.
    async fn rest(&mut self, delay: Duration) {
        pause(delay.min(SOON)).await;
        if delay <= SOON {
            return;
        }
        let known = self.restores.max(self.hurried_for);
        tokio::select! {
            biased;
            () = self.api_server.restored_since(known) => {
                self.hurried_for = self.api_server.restores();
            }
            () = pause(delay.saturating_sub(SOON)) => {}
        }
    }

    /// Waits for room in the actor's mailbox. When the actor is gone this loop ends with it.
    async fn tell(&self, message: WatchMessage) {
        self.own.hand_in(message).await;
    }
}

/// 500 ms doubling to 5 s, for ever.
fn backoff() -> ExponentialBackoff {
    backoff_up_to(Duration::from_secs(5))
}

fn backoff_up_to(longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(longest)
        .without_max_times()
        .build()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop task of the watch actor, or the lists before it, no handler"
)]
pub(super) async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}

fn version_of(item: &Item) -> String {
    match item {
        Item::Object(live) => live.resource_version.to_string(),
        Item::Pod(pod) => pod.resource_version.to_string(),
    }
}
