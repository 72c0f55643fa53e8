//! What the templates are filled with.

use std::time::Duration;

use super::super::actions::Button;
use super::super::model::{ActorView, EventView, Identity, Stamp, View, WorkloadView};
use crate::words::brief;

/// Rows of the workloads' table.
const ROWS: usize = 200;
/// Events in the list …
const EVENTS: usize = 100;
/// … and how many of them are open to the eye.
const NEWEST: usize = 20;

/// The demo's part of the page.
pub(super) struct Demo<'a> {
    pub(super) buttons: Vec<Button>,
    pub(super) form_token: &'a str,
    pub(super) said: Option<String>,
    /// What the story does by itself, newest first.
    pub(super) story: Vec<String>,
}

impl Demo<'_> {
    /// The value of a button's `action` field.
    pub(super) fn action(button: &Button) -> String {
        let action = serde_json::to_value(&button.action).unwrap_or_default();
        action["action"].as_str().unwrap_or_default().to_owned()
    }
}

/// One view, as the templates read it.
pub(super) struct Show<'a> {
    pub(super) view: &'a View,
    pub(super) identity: &'a Identity,
    pub(super) demo: Option<Demo<'a>>,
    pub(super) filter: &'a str,
    pub(super) rows: Vec<&'a WorkloadView>,
    pub(super) matching: usize,
    pub(super) newest: &'a [EventView],
    pub(super) older: &'a [EventView],
}

impl<'a> Show<'a> {
    pub(super) fn new(
        view: &'a View,
        identity: &'a Identity,
        demo: Option<Demo<'a>>,
        filter: &'a str,
    ) -> Self {
        let mut rows: Vec<&WorkloadView> = view.matching(filter).collect();
        let matching = rows.len();
        rows.truncate(ROWS);
        let events = view.events.get(..EVENTS).unwrap_or(&view.events);
        let (newest, older) = events.split_at(events.len().min(NEWEST));
        Self {
            view,
            identity,
            demo,
            filter,
            rows,
            matching,
            newest,
            older,
        }
    }

    /// Pods that are ready, and pods wanted.
    pub(super) fn pods(&self) -> (usize, u64) {
        // Of how many pods a state that cannot be read speaks, nobody knows.
        let known = self.view.workloads.iter().filter_map(|workload| {
            let wanted = workload.replicas?;
            Some((workload.ready - workload.surplus(), u64::from(wanted)))
        });
        known.fold((0, 0), |(ready, wanted), (own_ready, own_wanted)| {
            (ready + own_ready, wanted + own_wanted)
        })
    }

    /// How long ago something was, as HTML without anything foreign in it.
    pub(super) fn ago(&self, at: &Stamp) -> String {
        let text = brief(self.view.taken_at.since(at));
        format!("<time datetime=\"{at}\" title=\"{at}\" data-ago>{text}</time>")
    }

    /// How long until something is, the same way.
    pub(super) fn until(&self, at: &Stamp) -> String {
        let left = at.since(&self.view.taken_at);
        let text = if left < Duration::from_secs(1) {
            "now".to_owned()
        } else {
            format!("in {}", brief(left))
        };
        format!("<time datetime=\"{at}\" title=\"{at}\" data-until>{text}</time>")
    }

    /// [`Self::ago`], if it was.
    pub(super) fn since(&self, at: Option<&Stamp>) -> String {
        at.map(|at| self.ago(at)).unwrap_or_default()
    }

    /// Whether a mailbox is close to full.
    pub(super) fn is_crowded(actor: &ActorView) -> bool {
        let mailbox = actor.mailbox;
        mailbox.is_some_and(|mailbox| mailbox.depth * 4 >= mailbox.capacity * 3)
    }
}
