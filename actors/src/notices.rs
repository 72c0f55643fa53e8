//! Tells what happened as Kubernetes Events, to people who look at the cluster and not at krane.
//!
//! One task reads the board's events once a second, and asks nobody. It says the same about one
//! object rarely, little in all, and nothing while this process may not write; what it cannot say
//! it forgets. Lanes never notice.

mod ledger;
mod reason;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use krane_domain::ids::{Controller, Moment, WorkKey};
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{EventSink, Notice};
use ledger::{Ledger, Next};
use reason::{About, Said, said};
use tokio::task::JoinSet;

use crate::events::Event;
use crate::lease::Leadership;
use crate::status::StatusBoard;
use crate::store::Store;

/// Between two looks at what happened.
const PACE: Duration = Duration::from_secs(1);
/// For one request, whatever the adapter allows itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of deletions that are held, so many are told on their objects; the page has all.
const HELD_TOLD: usize = 20;

/// What Events are made with.
pub struct NoticeParts {
    /// Where it is written what happened.
    pub board: StatusBoard,
    /// Which objects are live.
    pub stores: Vec<Arc<Store>>,
    /// Where Events go.
    pub sink: Arc<dyn EventSink>,
    /// A process that does not lead says nothing …
    pub leadership: Leadership,
    /// … nor does one that may not write.
    pub writes: Arc<AtomicBool>,
    /// krane's own namespace, for what concerns no single object.
    pub namespace: Arc<str>,
}

/// The task that makes Events; it ends when this is dropped.
#[derive(Debug)]
pub struct Notices {
    _work: JoinSet<()>,
}

impl Notices {
    /// Starts to tell. What happened before is told, too.
    pub fn start(parts: NoticeParts) -> Self {
        let mut work = JoinSet::new();
        work.spawn(tell(parts));
        Self { _work: work }
    }
}

async fn tell(parts: NoticeParts) {
    let mut teller = Teller {
        parts,
        seen: 0,
        ledger: Ledger::default(),
        is_refused: false,
        quiet_until: Moment::ZERO,
    };
    loop {
        #[allow(
            clippy::disallowed_methods,
            reason = "no handler: whoever owns the task drops it"
        )]
        tokio::time::sleep(PACE).await;
        let round = AssertUnwindSafe(teller.round()).catch_unwind();
        if round.await.is_err() {
            tracing::error!("telling what happened as Events made krane panic; it begins anew");
            teller.ledger = Ledger::default();
        }
    }
}

/// What something is told about, and on which object.
struct Subject {
    name: Arc<str>,
    regarding: ObjectRef,
    uid: Option<Arc<str>>,
}

struct Teller {
    parts: NoticeParts,
    /// Number of the last event that was read.
    seen: u64,
    ledger: Ledger,
    is_refused: bool,
    /// Nothing is said before.
    quiet_until: Moment,
}

impl Teller {
    /// Whether an Event may be written now.
    fn may_speak(&self) -> bool {
        self.parts.writes.load(Ordering::Relaxed)
            && self.parts.leadership.is_leader(self.parts.board.now())
    }

    async fn round(&mut self) {
        let board = &self.parts.board;
        let last = board.events().last();
        if !self.may_speak() {
            self.seen = last;
            self.ledger = Ledger::default();
            return;
        }
        if last > self.seen {
            let mut news = board.events().newest_first();
            news.retain(|event| event.number > self.seen);
            self.seen = news.first().map_or(last, |newest| newest.number);
            for event in news.iter().rev() {
                self.note(event);
            }
        }
        // The server asked for that pause (D22a). The lease may end between two requests, above all while
        // the whole process stands still (D22).
        while self.may_speak()
            && self.parts.board.now() >= self.quiet_until
            && let Some(next) = self.ledger.next(self.parts.board.now())
        {
            let result = tokio::time::timeout(PATIENCE, self.publish(&next)).await;
            let result = result.unwrap_or(Err(None));
            let now = self.parts.board.now();
            match result {
                Ok(event) => {
                    self.is_refused = false;
                    self.ledger.published(&next, event, now);
                }
                // It can never be told: its object has a name that is none, or its namespace is gone.
                Err(Some(refusal)) if is_for_good(&refusal) => {
                    tracing::debug!(%refusal, "an Event is given up");
                    self.ledger.give_up(&next);
                }
                // Not asked at all: the next round forgets what was left to tell.
                Err(None) if !self.may_speak() => return,
                Err(refusal) => {
                    let pause = refusal.as_ref().and_then(|refusal| refusal.retry_after);
                    self.quiet_until = now + pause.unwrap_or_default();
                    let reason = refusal.map(|refusal| refusal.to_string());
                    let reason = reason.unwrap_or_else(|| "there was no answer in time".to_owned());
                    if !std::mem::replace(&mut self.is_refused, true) {
                        tracing::warn!(reason, "an Event could not be written");
                    }
                    self.ledger.failed(&next, now);
                    // Whatever is wrong is wrong with the next one, too.
                    return;
                }
            }
        }
    }

    /// The name of the Event that says it now.
    async fn publish(&self, next: &Next) -> Result<Arc<str>, Option<Refusal>> {
        let sink = &self.parts.sink;
        if let Some((event, count)) = &next.again
            && sink
                .recur(&next.notice, event, *count)
                .await
                .map_err(Some)?
        {
            return Ok(Arc::clone(event));
        }
        if !self.may_speak() {
            return Err(None);
        }
        sink.create(&next.notice).await.map_err(Some)
    }

    fn note(&mut self, event: &Event) {
        let Some(Said {
            about,
            reason,
            note,
        }) = said(&event.what)
        else {
            return;
        };
        let subjects = match (about, event.controller) {
            (About::Key(key), Some(controller)) => vec![self.subject(controller, &key)],
            (About::Held, Some(controller)) => self.held(controller),
            (About::Agent, _) | (About::Key(_) | About::Held, None) => vec![self.own()],
        };
        for Subject {
            name,
            regarding,
            uid,
        } in subjects
        {
            let notice = Notice {
                subject: name,
                regarding,
                uid,
                reason,
                note: note.clone(),
            };
            self.ledger.note(event.controller, notice, event.at);
        }
    }

    fn own(&self) -> Subject {
        let namespace = Arc::clone(&self.parts.namespace);
        Subject {
            name: "krane".into(),
            regarding: ObjectRef::new(Resource::Namespace, "", namespace),
            uid: None,
        }
    }

    /// The objects whose deletion is held, the first of them.
    fn held(&self, controller: Controller) -> Vec<Subject> {
        let Some(store) = self.store(controller) else {
            return Vec::new();
        };
        let held = store.held_deletions(HELD_TOLD);
        let keys = held.into_iter().map(WorkKey::Workload);
        keys.map(|key| self.subject(controller, &key)).collect()
    }

    /// The object of this key, or its namespace when there is no such object.
    fn subject(&self, controller: Controller, key: &WorkKey) -> Subject {
        let namespace = match key {
            WorkKey::Workload(key) => &key.namespace,
            WorkKey::Shared(shared) => shared.namespace(),
        };
        let namespace = ObjectRef::new(Resource::Namespace, "", Arc::clone(namespace));
        let store = self.store(controller);
        let live = store.and_then(|store| store.live_or_namespace(key, &namespace));
        Subject {
            name: format!("{controller} {key}").into(),
            uid: live.as_ref().map(|live| Arc::clone(&live.uid)),
            regarding: live.map_or(namespace, |live| live.reference.clone()),
        }
    }

    fn store(&self, controller: Controller) -> Option<&Arc<Store>> {
        let mut stores = self.parts.stores.iter();
        stores.find(|store| store.controller() == controller)
    }
}

/// Whether asking again brings nothing.
const fn is_for_good(refusal: &Refusal) -> bool {
    matches!(
        refusal.class,
        RefusalClass::Permanent
            | RefusalClass::NamespaceMissing
            | RefusalClass::NamespaceTerminating
    )
}

#[cfg(test)]
mod tests;
