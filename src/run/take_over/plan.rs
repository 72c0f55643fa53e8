//! What one controller would do about the objects that are there.

use std::collections::BTreeMap;

use futures::StreamExt;
use krane_domain::desired::Change;
use krane_domain::drift::{self, Decision};
use krane_domain::ids::{ObjectKey, SharedKey};
use krane_domain::kinds::{self, Desired, Member, Rules};
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::plan::{Leftover, Part, Plan, Unseen, deletion, leftover};
use krane_domain::refusal::RefusalClass;
use krane_domain::upgrades::is_older_rendering;
use krane_domain::view::View;
use krane_ports::{Answer, Clock, Item, Question};

use super::{Action, Findings, Planned, Summary};
use crate::run::assembly::Ports;
use crate::run::ports::SystemClock;

#[cfg(test)]
mod tests;

/// Questions in flight at once.
const AT_ONCE: usize = 16;

pub(super) async fn plan(side: &Ports, rules: &Rules, findings: &mut Findings) {
    let mut survey = Survey {
        side,
        rules,
        view: View::new(side.controller),
        unseen: Unseen::default(),
        unix_seconds: SystemClock.unix_seconds(),
        summary: Summary {
            controller: side.controller.name(),
            ..Summary::default()
        },
        members: BTreeMap::new(),
        findings,
    };
    survey.look().await;
    survey.ask().await;
    survey.shared().await;
    let summary = survey.summary;
    findings.controllers.push(summary);
}

struct Survey<'a> {
    side: &'a Ports,
    rules: &'a Rules,
    view: View,
    unseen: Unseen,
    /// The wall clock, for holds.
    unix_seconds: u64,
    summary: Summary,
    members: BTreeMap<SharedKey, Vec<Member>>,
    findings: &'a mut Findings,
}

impl Survey<'_> {
    async fn look(&mut self) {
        for spec in self.side.controller.watches(self.rules) {
            match self.side.cluster.list(&spec).await {
                Ok(listed) => {
                    for item in listed.items {
                        match item {
                            Item::Object(live) => drop(self.view.insert(live)),
                            Item::Pod(pod) => {
                                let is_other = pod.template.is_none() && !pod.is_terminating;
                                let is_workload =
                                    self.side.controller.primary() == Resource::ReplicaSet;
                                self.summary.pods_of_others += usize::from(is_other && is_workload);
                                drop(self.view.insert_pod(pod));
                            }
                        }
                    }
                }
                Err(refusal) if refusal.class == RefusalClass::KindMissing => {
                    self.unseen.missing.insert(spec.resource);
                }
                Err(refusal) => {
                    self.unseen.unknown.insert(spec.resource);
                    let kind = spec.resource.plural();
                    let problem = format!("{kind} cannot be listed: {refusal}");
                    self.findings.problems.push(problem);
                }
            }
        }
    }

    async fn ask(&mut self) {
        let questions = self.view.questions();
        self.summary.objects = questions.len();
        let control_plane = &self.side.control_plane;
        let asked = questions.into_iter().map(|(key, id)| async move {
            let question = Question { key, id };
            let answer = control_plane.desired(&question).await;
            (question.key, answer)
        });
        let answers: Vec<_> = futures::stream::iter(asked)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (key, answer) in answers {
            let object = self.side.controller.primary_of(&key);
            match answer {
                Ok(Answer::State { change, .. }) => match change {
                    Ok(Change::Apply(desired)) => self.wanted(&desired).await,
                    Ok(Change::Delete) => self.deleted(&key),
                    Err(invalid) => {
                        self.note(Action::Refuse, &object, vec![invalid.to_string()]);
                    }
                },
                Ok(Answer::NotFound) => self.note(Action::DeleteUnknown, &object, Vec::new()),
                Ok(Answer::Empty) => {}
                Err(failure) => {
                    let problem = format!("what is wanted of {object} is unknown: {failure}");
                    self.findings.problems.push(problem);
                }
            }
        }
    }

    async fn wanted(&mut self, desired: &Desired) {
        let live = self.view.workload(desired.key()).cloned();
        let unseen = self.unseen.clone();
        let plan = Plan {
            desired,
            rules: self.rules,
            unseen: &unseen,
        };
        if plan.blocked_by().is_some() {
            // The list that failed is a problem already.
            return;
        }
        for part in plan.parts(live.as_deref()) {
            match part {
                Part::Shared(key) => {
                    let members = self.members.entry(key).or_default();
                    members.push(desired.member());
                }
                Part::Unneeded(reference) => {
                    let found = self.view.get(&reference).map(|found| &**found);
                    match leftover(found, live.as_deref(), self.unix_seconds) {
                        Leftover::Stays => {}
                        Leftover::Held(_) => self.summary.in_place += 1,
                        Leftover::Goes => self.note(Action::Delete, &reference, Vec::new()),
                    }
                }
                Part::Primary(rendered) => {
                    self.judge(&rendered).await;
                    if rendered.keeps_template {
                        self.note(Action::Roll, &rendered.reference, Vec::new());
                    }
                }
                Part::Dependant(rendered) => self.judge(&rendered).await,
            }
        }
    }

    fn deleted(&mut self, key: &ObjectKey) {
        for removal in deletion(&self.view, key) {
            self.note(Action::Delete, &removal.reference, Vec::new());
        }
    }

    async fn shared(&mut self) {
        for (key, mut members) in std::mem::take(&mut self.members) {
            members.extend(self.view.members_of(&key));
            members.sort();
            members.dedup();
            // One that others made is used as it is.
            let is_namespace = matches!(key, SharedKey::Namespace(_));
            let reference = kinds::shared_reference(&key);
            if is_namespace && self.view.get(&reference).is_none() {
                continue;
            }
            if let Some(rendered) = kinds::render_shared(&key, &members, self.rules) {
                self.judge(&rendered).await;
            }
        }
    }

    /// What the object needs to become as it is rendered.
    async fn judge(&mut self, rendered: &Rendered) {
        let reference = &rendered.reference;
        let live = self.view.get(reference).cloned();
        let decision = drift::decide(rendered, live.as_deref(), None, self.unix_seconds);
        let paths = |differences: &[drift::Difference]| {
            let paths = differences.iter().map(|found| found.path.clone());
            paths.collect::<Vec<_>>()
        };
        match decision {
            Decision::InPlace | Decision::Terminating | Decision::Held { .. } => {
                self.summary.in_place += 1;
            }
            Decision::Create => self.place(rendered).await,
            Decision::Update { differences, .. } => {
                let is_older = |live: &LiveObject| is_older_rendering(live, &differences);
                let action = if live.as_deref().is_some_and(is_older) {
                    Action::RenderAnew
                } else {
                    Action::Change
                };
                self.note(action, reference, paths(&differences));
            }
            Decision::Adopt { foreign, .. } => {
                let paths = foreign.into_iter().flat_map(|foreign| foreign.paths);
                self.note(Action::Change, reference, paths.collect());
            }
            Decision::Recreate { .. } => self.note(Action::Recreate, reference, Vec::new()),
            Decision::NotOurs => {
                let problem = format!("{reference} lacks the label of krane and is left alone");
                self.findings.problems.push(problem);
            }
            Decision::Refuse(invalid) => {
                self.note(Action::Refuse, reference, vec![invalid.to_string()]);
            }
        }
    }

    /// Nothing of ours has the name: what has it?
    async fn place(&mut self, rendered: &Rendered) {
        let reference = &rendered.reference;
        match self.side.cluster.get(reference).await {
            Ok(None) => self.note(Action::Create, reference, Vec::new()),
            Ok(Some(found)) if drift::is_left_behind(rendered, &found) => {
                self.note(Action::TakeOver, reference, Vec::new());
            }
            Ok(Some(_)) => {
                let problem = format!("{reference} is somebody else's: rename or delete it");
                self.findings.problems.push(problem);
            }
            Err(refusal) => {
                let problem = format!("{reference} cannot be read: {refusal}");
                self.findings.problems.push(problem);
            }
        }
    }

    fn note(&mut self, action: Action, object: &ObjectRef, paths: Vec<String>) {
        self.findings.changes.push(Planned {
            action,
            object: object.to_string(),
            paths,
        });
    }
}
