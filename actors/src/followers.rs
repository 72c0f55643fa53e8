//! Followers of the scheduler's watch.
//!
//! Each has a feed of its own, which the reporter fills while it looks at objects anyway. Nobody
//! waits for a follower.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::object::LiveObject;
use krane_domain::report::Report;
use krane_domain::scheduler::{CallFailure, Feed, Watched};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::refusals::unavailable;

/// Followers at once, of each controller.
pub const MOST_FOLLOWERS: usize = 64;

/// One follower; its feed ends with it.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    line: Arc<Line>,
}

#[derive(Debug, Default)]
struct Line {
    feed: Mutex<Feed>,
    /// One follower waits here: what was said before it came back is not missed.
    news: Notify,
    is_over: AtomicBool,
}

impl Line {
    fn say(&self, change: impl FnOnce(&mut Feed)) {
        let mut feed = self.feed.lock();
        change(&mut feed);
        if feed.due() > 0 {
            self.news.notify_one();
        }
    }
}

impl Follower {
    /// The next state, or why there is none any more. Safe to drop and to call again.
    pub(crate) async fn next(&self) -> Result<Arc<Watched>, CallFailure> {
        loop {
            if self.line.is_over.load(Ordering::Relaxed) {
                return Err(unavailable(
                    "its controller is starting over; watch again for the present state",
                ));
            }
            if let Some(state) = self.line.feed.lock().take() {
                return Ok(state);
            }
            self.line.news.notified().await;
        }
    }

    /// Tells it of an object that was there before it came, unless it has heard of it already.
    pub(crate) fn show_first(&self, controller: Controller, state: Watched) {
        self.line
            .say(|feed| feed.show_first(controller, Arc::new(state)));
    }
}

/// Who follows one controller.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    lines: Vec<Weak<Line>>,
}

impl Followers {
    /// Lets it hear of what is shown from here on, unless too many do.
    pub(crate) fn admit(&mut self, follower: &Follower) -> bool {
        self.lines.retain(|line| line.strong_count() > 0);
        let has_room = self.lines.len() < MOST_FOLLOWERS;
        if has_room {
            self.lines.push(Arc::downgrade(&follower.line));
        }
        has_room
    }

    fn each(&mut self, say: impl Fn(&mut Feed)) {
        self.lines.retain(|line| {
            let line = line.upgrade();
            line.is_some_and(|line| {
                line.say(&say);
                true
            })
        });
    }

    /// This is true of a live object now.
    pub(crate) fn show(&mut self, controller: Controller, report: &Report, live: &LiveObject) {
        if self.lines.is_empty() {
            return;
        }
        if let Some(state) = Watched::of(report, live) {
            let state = Arc::new(state);
            self.each(|feed| feed.show(controller, Arc::clone(&state)));
        }
    }

    /// This object is gone.
    pub(crate) fn lose(&mut self, controller: Controller, key: &ObjectKey) {
        if self.lines.is_empty() {
            return;
        }
        if let Some(state) = Watched::gone(controller, key) {
            let state = Arc::new(state);
            self.each(|feed| feed.lose(controller, Arc::clone(&state)));
        }
    }

    /// The objects of this controller that anybody knows of.
    pub(crate) fn known(&self, controller: Controller) -> Vec<ObjectKey> {
        let lines = self.lines.iter().filter_map(Weak::upgrade);
        lines
            .flat_map(|line| {
                let feed = line.feed.lock();
                let ours = feed.subjects().filter(|(of, _)| *of == controller);
                ours.map(|(_, key)| key.clone()).collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Drop for Followers {
    /// What they were told of is forgotten: nobody would tell them that it is gone.
    fn drop(&mut self) {
        for line in self.lines.iter().filter_map(Weak::upgrade) {
            line.is_over.store(true, Ordering::Relaxed);
            line.news.notify_one();
        }
    }
}
