//! Whether the API server answers any of a controller's watches: the one rule for events and UI.

use krane_domain::ids::{Controller, Moment};
use krane_domain::kinds::Rules;
use krane_domain::object::Resource;

use super::{Memory, Store};

/// None of the watches of a controller is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the first of them broke …
    pub first: Moment,
    /// … and the last.
    pub last: Moment,
    /// The last error of the first.
    pub error: String,
}

impl Store {
    /// Since when no watch is answered.
    pub(crate) fn api_server_silence(&self) -> Option<Silence> {
        self.with(|memory| silence(memory, self.controller, &self.rules))
    }
}

/// Since when no watch is answered; nothing as long as a single kind can be watched, or the API server, of which nothing
/// was seen yet, says that krane may not.
pub(super) fn silence(memory: &Memory, controller: Controller, rules: &Rules) -> Option<Silence> {
    let is_refused = |resource: &Resource| {
        let watch = memory.broken_watches.get(resource);
        watch.is_some_and(|watch| watch.is_refused)
    };
    let watched = controller.watches(rules).into_iter();
    let watched: Vec<Resource> = watched.map(|spec| spec.resource).collect();
    if !memory.is_listed && watched.iter().any(is_refused) {
        return None;
    }
    // A kind that krane may not list is asked for too rarely to tell whether anybody answers.
    let is_asked = |it: &&Resource| !is_refused(it) && !memory.view.is_unknown(**it);
    let asked = || watched.iter().filter(is_asked);
    let broken = || asked().filter_map(|it| memory.broken_watches.get(it));
    let first = broken().min_by_key(|watch| watch.since)?;
    let last = broken().map(|watch| watch.since).max()?;
    let is_unanswered =
        |it: &Resource| memory.broken_watches.contains_key(it) || memory.kinds_missing.contains(it);
    asked().all(is_unanswered).then(|| Silence {
        first: first.since,
        last,
        error: first.error.clone(),
    })
}
