//! Sends, their ends, early, late and repeated, and everything else that happens to an outbox, in
//! all orders (F1).

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{GONE_MEMORY, Phase, SendId};
use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// An object is seen with this status, to be said after so many seconds.
    Observe(usize, bool, u64),
    /// An object is gone.
    Gone(usize),
    /// Whatever is due is sent.
    Send,
    /// A send ends: one of all there ever were, so that most ends are late.
    End(prop::sample::Index, Delivery),
    /// The newest send of those in flight ends.
    EndOfOneInFlight(prop::sample::Index, Delivery),
    /// The reporter, or its term, is lost.
    Abandon,
    /// Everything live is said again after so many seconds.
    Refresh(u64),
    /// Housekeeping.
    Forget,
    /// So many seconds pass.
    Pass(u64),
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![
        2 => Just(Delivery::Delivered),
        1 => Just(Delivery::Unreachable),
        1 => Just(Delivery::Refused),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (name(), any::<bool>(), 0u64..4).prop_map(|(it, ready, delay)| Step::Observe(it, ready, delay)),
        1 => name().prop_map(Step::Gone),
        6 => Just(Step::Send),
        4 => (index(), delivery()).prop_map(|(at, end)| Step::End(at, end)),
        4 => (index(), delivery()).prop_map(|(at, end)| Step::EndOfOneInFlight(at, end)),
        2 => Just(Step::Abandon),
        1 => (0u64..4).prop_map(Step::Refresh),
        1 => Just(Step::Forget),
        3 => prop_oneof![8 => 0u64..5, 1 => 500u64..2_500].prop_map(Step::Pass),
    ]
}

/// Everything an outbox is, for comparing.
fn all_of(outbox: &Outbox) -> String {
    format!("{outbox:?}")
}

/// An outbox, and what is true of it.
#[derive(Default)]
struct Model {
    outbox: Outbox,
    now: Moment,
    /// Every send there ever was.
    sends: Vec<SendId>,
    /// What is in flight.
    out: BTreeMap<&'static str, SendId>,
    wanted: BTreeMap<&'static str, Report>,
    /// When an object was last delivered, if nothing since gives a reason to say it again.
    said: BTreeMap<&'static str, Moment>,
}

impl Model {
    fn take(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Observe(it, ready, delay) => {
                let report = instances(NAMES[*it], *ready);
                self.want(NAMES[*it], report.clone());
                self.outbox.observe(report, now, now + at(*delay));
            }
            Step::Gone(it) => {
                self.want(NAMES[*it], gone(NAMES[*it]));
                self.outbox.observe_gone(&key(NAMES[*it]), None, now);
            }
            Step::Send => while self.send() {},
            Step::End(which, delivery) if !self.sends.is_empty() => {
                let id = which.get(&self.sends).clone();
                self.end(&id, *delivery);
            }
            Step::EndOfOneInFlight(which, delivery) if !self.out.is_empty() => {
                let out: Vec<SendId> = self.out.values().cloned().collect();
                self.end(which.get(&out), *delivery);
            }
            Step::End(..) | Step::EndOfOneInFlight(..) => {}
            Step::Abandon => {
                self.outbox.abandon(now);
                self.out.clear();
            }
            Step::Refresh(delay) => {
                self.outbox.refresh(|_| now + at(*delay));
                // What is gone is said once.
                let wanted = &self.wanted;
                self.said.retain(|name, _| wanted[name].is_gone());
            }
            Step::Forget => {
                self.outbox.forget_gone(now);
                let said = &mut self.said;
                self.wanted.retain(|name, report| {
                    let is_old = said.get(name).is_some_and(|at| *at + GONE_MEMORY <= now);
                    let is_forgotten = report.is_gone() && is_old;
                    if is_forgotten {
                        said.remove(name);
                    }
                    !is_forgotten
                });
            }
            Step::Pass(seconds) => self.now += at(*seconds),
        }
        self.check();
    }

    fn want(&mut self, name: &'static str, report: Report) {
        if self.wanted.insert(name, report.clone()) != Some(report) {
            self.said.remove(name);
        }
    }

    /// Sends one report, if one is due.
    fn send(&mut self) -> bool {
        let due = self.outbox.next_due();
        let Some(sending) = self.outbox.next(self.now) else {
            assert!(due.is_none_or(|due| due > self.now), "due and not sent");
            return false;
        };
        let name = NAMES.into_iter().find(|name| **name == *sending.id.name);
        let name = name.expect("one of these");
        assert_eq!(self.wanted.get(name), Some(&sending.report), "the newest");
        let before = self.out.insert(name, sending.id.clone());
        assert_eq!(before, None, "one in flight per name");
        assert!(!self.sends.contains(&sending.id), "a number of its own");
        self.sends.push(sending.id);
        if let Some(at) = self.said.remove(name) {
            let reason = at + REFRESH.mul_f64(0.9);
            assert!(reason <= self.now, "{name} was sent again without a reason");
        }
        true
    }

    fn end(&mut self, id: &SendId, delivery: Delivery) {
        let name = NAMES.into_iter().find(|name| **name == *id.name);
        let name = name.expect("one of these");
        let is_late = self.out.get(name) != Some(id);
        assert_eq!(self.outbox.is_in_flight(id), !is_late);
        let before = all_of(&self.outbox);
        let sent = match &self.outbox.entries.get(name).map(|entry| &entry.phase) {
            Some(Phase::InFlight { sent, .. }) => Some(sent.clone()),
            Some(Phase::Quiet | Phase::Due(_)) | None => None,
        };
        self.outbox
            .finish(id, delivery, self.now, self.now + at(2), 0.5);
        if is_late {
            assert_eq!(before, all_of(&self.outbox), "a late end changes nothing");
            return;
        }
        self.out.remove(name);
        if delivery == Delivery::Delivered && sent.as_ref() == self.wanted.get(name) {
            self.said.insert(name, self.now);
        }
    }

    fn check(&self) {
        let entries = &self.outbox.entries;
        let mut due = std::collections::BTreeSet::new();
        let mut out = BTreeMap::new();
        for (name, entry) in entries {
            match &entry.phase {
                Phase::Quiet => {}
                Phase::Due(at) => {
                    due.insert((*at, name.clone()));
                }
                Phase::InFlight { number, .. } => {
                    out.insert(&**name, *number);
                }
            }
        }
        assert_eq!(self.outbox.due, due, "what is due is what is in the set");
        assert_eq!(self.outbox.in_flight(), out.len());
        let known = self.out.iter().map(|(name, id)| (*name, id.number));
        assert_eq!(out, known.collect(), "in flight is what was sent last");
        for (name, report) in &self.wanted {
            assert_eq!(self.outbox.wanted(name), Some(report));
        }
    }

    /// From now on everything that is sent arrives.
    fn calm_down(&mut self) {
        self.outbox.abandon(self.now);
        self.out.clear();
        for _ in 0..4 * NAMES.len() {
            if self.outbox.undelivered() == 0 {
                return;
            }
            let due = self.outbox.next_due().expect("what is wanted is due");
            self.now = self.now.max(due);
            while self.send() {}
            for id in self.out.clone().into_values() {
                self.end(&id, Delivery::Delivered);
            }
            self.check();
        }
        panic!("{} never delivered", self.outbox.undelivered());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn in_every_order_all_is_delivered_once_and_late_ends_change_nothing(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let mut model = Model::default();
        for step in &steps {
            model.take(step);
        }
        model.calm_down();
    }
}
