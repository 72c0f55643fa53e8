//! Whether the API server answers any of a controller's watches.

use krane_domain::ids::{Controller, Moment};
use krane_domain::kinds::Rules;
use krane_domain::object::Resource;

use super::{Memory, Store};

/// None of the watches of a controller is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    /// When the first of them broke …
    pub(crate) first: Moment,
    /// … and the last.
    pub(crate) last: Moment,
    /// The last error of the first.
    pub(crate) error: String,
}

impl Store {
    /// Since when no watch is answered; nothing as long as a single kind can be watched, or the
    /// API server says that krane may not.
    pub(crate) fn api_server_silence(&self) -> Option<Silence> {
        self.with(|memory| silence(memory, self.controller, &self.rules))
    }
}

fn silence(memory: &Memory, controller: Controller, rules: &Rules) -> Option<Silence> {
    // A kind that krane may not list says nothing of an outage: it is asked for too rarely.
    let is_unknown = |resource: &Resource| memory.view.is_unknown(*resource);
    let mut broken = memory.broken_watches.clone();
    broken.retain(|resource, _| !is_unknown(resource));
    let first = broken.values().min_by_key(|watch| watch.since)?;
    let last = broken.values().map(|watch| watch.since).max()?;
    let watched = controller.watches(rules).into_iter();
    let mut watched = watched.filter(|spec| !is_unknown(&spec.resource));
    let is_silent = !broken.values().any(|watch| watch.is_refused)
        && watched.all(|spec| {
            broken.contains_key(&spec.resource) || memory.kinds_missing.contains(&spec.resource)
        });
    is_silent.then(|| Silence {
        first: first.since,
        last,
        error: first.error.clone(),
    })
}
