//! One workload with everything that is known of it: a verdict, the chain of reasons, its objects.

mod chain;
mod part;
mod verdict;

use krane_actors::store::Store;
use krane_domain::ids::ObjectKey;
use serde::Serialize;

pub use chain::ChainStep;
pub use part::{DifferenceView, ForeignView, PartView};

use super::{EventView, Sources, Stamp, View, WorkloadView, workloads};

/// Events of one workload that are told.
const EVENTS: usize = 50;

/// One workload, for a person who asks why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectView {
    /// When it was taken.
    pub taken_at: Stamp,
    /// Where it stands.
    pub workload: WorkloadView,
    /// Since when krane does not see all of its objects, if so: until then all of this was true.
    pub blind_since: Option<Stamp>,
    /// That in sentences, the most urgent first.
    pub verdict: String,
    /// From what was wanted to what the control plane was told, in that order.
    pub chain: Vec<ChainStep>,
    /// Its objects, in the order in which they are brought about.
    pub objects: Vec<PartView>,
    /// Fields that differ, in all of them.
    pub differing: usize,
    /// What happened to it lately, newest first.
    pub events: Vec<EventView>,
    /// Commands that show more, for a shell with rights of its own.
    pub commands: Vec<String>,
}

impl Sources {
    /// One workload of this controller; nothing when nothing is wanted of it.
    #[must_use]
    pub fn object(&self, view: &View, controller: &str, key: &ObjectKey) -> Option<ObjectView> {
        let mut stores = self.stores.iter();
        let store = stores.find(|store| store.controller().name() == controller)?;
        let now = self.epoch.at(self.board.now());
        let explained = store.explain(key, now.unix_seconds())?;
        let workload = workloads::of(
            store.controller(),
            &explained.workload,
            are_replaced(store),
            &self.epoch,
        );
        let objects: Vec<PartView> = explained
            .objects
            .iter()
            .map(|object| part::view(object, &workload, &self.epoch))
            .collect();
        let chain = chain::of(&explained, &workload, &objects, &self.epoch);
        let names: Vec<&str> = objects.iter().map(|it| it.object.as_str()).collect();
        let events = view
            .events
            .iter()
            .filter(|event| is_about(event, key, &names));
        let mut controllers = view.controllers.iter();
        let ours = controllers.find(|it| it.name == controller);
        let broken = ours.into_iter().flat_map(|it| &it.watches.broken);
        let blind_since = broken.map(|watch| watch.since).min();
        Some(ObjectView {
            taken_at: now,
            blind_since,
            verdict: verdict::of(&workload, &objects, blind_since),
            chain,
            differing: objects.iter().map(|it| it.differences.len()).sum(),
            events: events.take(EVENTS).cloned().collect(),
            commands: objects
                .iter()
                .filter_map(|part| part.command.clone())
                .collect(),
            objects,
            workload,
        })
    }
}

fn are_replaced(store: &Store) -> bool {
    store.rules().replaces_outdated_pods
}

/// Whether an event tells of the workload or of one of its objects.
fn is_about(event: &EventView, key: &ObjectKey, names: &[&str]) -> bool {
    let Some(object) = event.object.as_deref() else {
        return false;
    };
    let bare = object.rsplit(' ').next().unwrap_or(object);
    bare == key.to_string() || names.contains(&object)
}
