//! What the templates are filled with.

use std::time::Duration;

use krane_domain::ids::ObjectKey;
use krane_domain::words::brief;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::actions::Button;
use super::super::feed::Feed;
use super::super::history::Line;
use super::super::model::{
    ActorView, EventView, Filter, Identity, ListQuery, Listing, LogView, Sort, Stamp, View,
    WorkloadView,
};

/// What stands in addresses as it is. A dot does not: of two of them a browser would make a way up.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');
/// Events in the list …
const EVENTS: usize = 100;
/// … and how many of them are open to the eye.
const NEWEST: usize = 20;

/// Lines of the log on its page.
const LOG_LINES: usize = 200;

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
    pub(super) query: &'a PageQuery,
    pub(super) feed: &'a Feed,
}

/// What the address of the page asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct PageQuery {
    /// Which workloads.
    pub(super) list: ListQuery,
    /// Words that an event must have.
    pub(super) events: String,
}

impl<'a> Show<'a> {
    /// When this process began: a page of another one is of no use any more.
    pub(super) fn epoch(&self) -> Stamp {
        self.feed.sources().epoch.at(Duration::ZERO)
    }

    /// Which revision of each part the page shows, so that it asks only for what is newer.
    pub(super) fn revisions(&self) -> String {
        serde_json::to_string(&self.view.revisions).unwrap_or_default()
    }

    /// The workloads asked for. Made for the part that lists them, like what follows.
    pub(super) fn list(&self) -> Listing<'a> {
        self.view.list(&self.query.list)
    }

    /// The events asked for: those that are open to the eye, and those before.
    pub(super) fn events(&self) -> (Vec<&'a EventView>, Vec<&'a EventView>) {
        let events = self.view.events.iter();
        let filter = Filter::new(&self.query.events);
        let events = events.filter(|event| event.matches(&filter));
        let mut newest: Vec<&EventView> = events.take(EVENTS).collect();
        let older = newest.split_off(newest.len().min(NEWEST));
        (newest, older)
    }

    /// The log lines asked for, newest first.
    pub(super) fn log(&self) -> Vec<LogView> {
        let sources = self.feed.sources();
        sources.log(&self.query.list.filter, 0, LOG_LINES)
    }

    /// Where the log lines are that name a workload.
    pub(super) fn log_of(workload: &WorkloadView) -> String {
        let name = format!("{}/{}", workload.namespace, workload.name);
        format!("/log?filter={}", utf8_percent_encode(&name, NAME))
    }

    /// A few numbers over the last hour; none as long as there is no line to draw.
    pub(super) fn history(&self) -> Vec<Line> {
        let mut lines = self.feed.history();
        if lines.iter().all(|line| line.samples.len() < 2) {
            lines.clear();
        }
        lines
    }

    /// The address of another page of the list, or of the same one in another order.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "templates hand over references"
    )]
    pub(super) fn listed(&self, page: usize, sort: &Sort) -> String {
        let filter = utf8_percent_encode(&self.query.list.filter, NON_ALPHANUMERIC);
        format!(
            "/?filter={filter}&sort={}&page={page}#workloads",
            sort.name()
        )
    }

    /// The columns by which the list can be ordered.
    pub(super) const fn columns() -> [(Sort, &'static str, &'static str); 5] {
        [
            (Sort::Name, "Workload", ""),
            (Sort::State, "State", ""),
            (Sort::Pods, "Pods ready", ""),
            (Sort::Version, "Version", "num"),
            (Sort::Applied, "Applied", ""),
        ]
    }

    /// Where a workload has a page of its own.
    pub(super) fn address(workload: &WorkloadView) -> String {
        let key = ObjectKey::new(workload.namespace.as_str(), workload.name.as_str());
        format!("/{}", Self::part_of(workload.controller, &key))
    }

    /// Where the part of a workload's page is that changes.
    pub(super) fn part_of(controller: &str, key: &ObjectKey) -> String {
        let part = |text: &str| utf8_percent_encode(text, NAME).to_string();
        format!(
            "workloads/{controller}/{}/{}",
            part(&key.namespace),
            part(&key.name)
        )
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
