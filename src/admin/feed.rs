//! One view for all viewers: taken when somebody looks, compared with the one before, and
//! announced to those who stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use super::history::{self, History, Line};
use super::model::{Sources, View};

/// A view younger than this is shown again.
const FRESH: Duration = Duration::from_millis(250);
/// How often changes that are no events are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Viewers of the stream at once.
const MOST_VIEWERS: usize = 64;

/// The view that all viewers share.
pub struct Feed {
    sources: Sources,
    history: History,
    latest: Mutex<Option<Arc<View>>>,
    announced: watch::Sender<Option<Arc<View>>>,
    viewers: AtomicUsize,
    arrived: Notify,
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
        let now = self.sources.epoch.at(self.sources.board.now());
        if let Some(view) = latest.as_ref()
            && now.since(&view.taken_at) < FRESH
        {
            return Arc::clone(view);
        }
        let view = Arc::new(self.sources.view(latest.as_deref()));
        *latest = Some(Arc::clone(&view));
        view
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
            // What happens in quick succession is told together.
            let _ = timeout(FRESH, stop.cancelled()).await;
            let _ = timeout(TICK.saturating_sub(FRESH), async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = events.news() => {}
                }
            })
            .await;
        }
    }
}
