//! One view for all viewers: taken when somebody looks, compared with the one before, and
//! announced to those who stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use krane_domain::ids::Moment;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use super::history::{self, History, Line};
use super::model::{Sources, View};

/// A view younger than this is shown again.
const FRESH: Duration = Duration::from_millis(250);
/// So many times as long as it took to take it, a view is shown again: whoever looks costs a fiftieth of a core at most,
/// however many workloads there are.
const WORTH: u32 = 50;
/// No view older than this is shown.
const STALE: Duration = Duration::from_secs(2);
/// What happens in so quick a succession is told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// How often changes that are no events are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Viewers of the stream at once.
const MOST_VIEWERS: usize = 64;

/// The view that all viewers share.
pub struct Feed {
    sources: Sources,
    history: History,
    latest: Mutex<Option<Latest>>,
    /// When a person last had something done.
    acted_at: Mutex<Option<Moment>>,
    announced: watch::Sender<Option<Arc<View>>>,
    viewers: AtomicUsize,
    arrived: Notify,
}

/// The newest view.
struct Latest {
    view: Arc<View>,
    taken_at: Moment,
    /// How long it took to take it.
    took: Duration,
}

/// How long a view is shown that took so long to take.
fn fresh_for(took: Duration) -> Duration {
    (took * WORTH).clamp(FRESH, STALE)
}

/// Answers a request that acts: whoever asked wants to see what came of it.
pub(super) async fn refresh(
    State(feed): State<Arc<Feed>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    *feed.acted_at.lock() = Some(feed.sources.board.now());
    response
}

/// Somebody who follows the feed; leaving ends it.
pub struct Viewer {
    feed: Arc<Feed>,
    /// The view last announced.
    pub news: watch::Receiver<Option<Arc<View>>>,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.feed.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Feed {
    /// A feed from these sources; nothing is read before somebody looks.
    #[must_use]
    pub fn new(sources: Sources) -> Arc<Self> {
        Arc::new(Self {
            sources,
            history: History::default(),
            latest: Mutex::default(),
            acted_at: Mutex::default(),
            announced: watch::Sender::new(None),
            viewers: AtomicUsize::new(0),
            arrived: Notify::new(),
        })
    }

    /// Where it reads from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The present view.
    pub fn view(&self) -> Arc<View> {
        let mut latest = self.latest.lock();
        let start = self.sources.board.now();
        if let Some(latest) = latest.as_ref()
            && self.is_fresh(latest, start)
        {
            return Arc::clone(&latest.view);
        }
        let before = latest.as_ref().map(|latest| &*latest.view);
        let view = Arc::new(self.sources.view(before));
        *latest = Some(Latest {
            view: Arc::clone(&view),
            taken_at: start,
            took: self.sources.board.now().saturating_sub(start),
        });
        view
    }

    /// Nothing from before an action is; for a while after it a dear view is no longer than a cheap one.
    fn is_fresh(&self, latest: &Latest, now: Moment) -> bool {
        let acted_at = *self.acted_at.lock();
        let shown_for = match acted_at {
            Some(at) if at >= latest.taken_at => return false,
            Some(at) if now.saturating_sub(at) < STALE => FRESH,
            Some(_) | None => fresh_for(latest.took),
        };
        now.saturating_sub(latest.taken_at) < shown_for
    }

    /// Joins those who follow; `None` when there are too many.
    pub fn follow(self: &Arc<Self>) -> Option<Viewer> {
        if self.viewers.fetch_add(1, Ordering::Relaxed) >= MOST_VIEWERS {
            self.viewers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.arrived.notify_one();
        Some(Viewer {
            feed: Arc::clone(self),
            news: self.announced.subscribe(),
        })
    }

    /// A few numbers over the last hour.
    pub(super) fn history(&self) -> Vec<Line> {
        self.history.lines(&self.sources)
    }

    /// Takes samples for the history, and looks for changes while somebody follows, until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.remember(&stop), self.announce(&stop));
    }

    async fn remember(&self, stop: &CancellationToken) {
        let mut ticks = tokio::time::interval(history::EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => self.history.sample(&self.sources),
            }
        }
    }

    /// Looks for changes for as long as somebody follows, until `stop`.
    async fn announce(&self, stop: &CancellationToken) {
        let events = self.sources.board.events();
        while !stop.is_cancelled() {
            if self.viewers.load(Ordering::Relaxed) == 0 {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.arrived.notified() => {}
                }
            }
            // Before the look: nothing that comes after it is missed.
            let news = events.news();
            let view = self.view();
            self.announced.send_if_modified(|announced| {
                let is_news = announced
                    .as_ref()
                    .is_none_or(|last| last.revisions != view.revisions);
                if is_news {
                    *announced = Some(view);
                }
                is_news
            });
            let _ = timeout(TOGETHER, stop.cancelled()).await;
            let _ = timeout(TICK.saturating_sub(TOGETHER), async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = news => {}
                }
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_is_dear_is_shown_longer_but_never_for_long() {
        let shown = |took| fresh_for(Duration::from_millis(took)).as_millis();
        assert_eq!(
            [0, 5, 10, 40, 5_000].map(shown),
            [250, 250, 500, 2_000, 2_000]
        );
    }
}
