//! What one controller would do about the objects that are there.

use std::collections::BTreeMap;

use futures::StreamExt;
use krane_domain::desired::Change;
use krane_domain::drift::{self, Decision};
use krane_domain::ids::SharedKey;
use krane_domain::kinds::{self, Desired, Member, Rules};
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::refusal::RefusalClass;
use krane_domain::upgrades::is_older_rendering;
use krane_domain::view::View;
use krane_ports::{Answer, Item, Question};

use super::{Action, Findings, Planned, Summary};
use crate::run::assembly::Ports;

/// Questions in flight at once.
const AT_ONCE: usize = 16;

pub(super) async fn plan(side: &Ports, rules: &Rules, findings: &mut Findings) {
    let mut survey = Survey {
        side,
        rules,
        view: View::new(side.controller),
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
                Err(refusal) if refusal.class == RefusalClass::KindMissing => {}
                Err(refusal) => {
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
            let object = ObjectRef::new(
                self.side.controller.primary(),
                key.namespace.clone(),
                key.name.clone(),
            );
            match answer {
                Ok(Answer::State { change, .. }) => match change {
                    Ok(Change::Apply(desired)) => self.wanted(&desired).await,
                    Ok(Change::Delete) => self.note(Action::Delete, &object, Vec::new()),
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
        let primary = desired.render(self.rules, live.as_deref());
        self.judge(&primary).await;
        if primary.keeps_template {
            self.note(Action::Roll, &primary.reference, Vec::new());
        }
        if let Some(live) = live {
            for rendered in desired.dependants(self.rules, &live) {
                self.judge(&rendered).await;
            }
        }
        for needed in desired.needs(self.rules) {
            self.members
                .entry(needed)
                .or_default()
                .push(desired.member());
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
        let decision = drift::decide(rendered, live.as_deref(), None, 0);
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
