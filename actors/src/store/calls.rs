//! Calls of the scheduler that wait for their lane (D32).

use std::collections::BTreeMap;
use std::sync::Arc;

use krane_domain::backlog::{Claim, Standing};
use krane_domain::desired::Change;
use krane_domain::ids::{Moment, ObjectKey, WorkKey};
use krane_domain::kinds::{self, Member};
use krane_domain::scheduler::{self, CallFailure, CallFailureKind, Owner, Wish};
use tokio::sync::oneshot;

use super::{Memory, Store};
use crate::refusals::starting;

/// Calls that may wait at once, of each controller.
const MOST_WAITING: usize = 256;

/// Where the answer to a call goes.
pub type CallAnswer = oneshot::Sender<Result<(), CallFailure>>;

/// The calls that wait, one for each object.
#[derive(Debug, Default)]
pub struct Calls {
    waiting: BTreeMap<ObjectKey, CallAnswer>,
}

impl Calls {
    fn wait(&mut self, key: ObjectKey, answer: CallAnswer) {
        if let Some(earlier) = self.waiting.insert(key, answer) {
            let words = "another call for the object came before it was done";
            let _ = earlier.send(failed(CallFailureKind::Aborted, words));
        }
    }
}

fn failed(kind: CallFailureKind, words: impl Into<String>) -> Result<(), CallFailure> {
    Err(CallFailure::new(kind, words))
}

impl Store {
    /// Takes in what a call wants; the answer comes when its lane has ended.
    pub fn call(&self, wish: Wish, answer: CallAnswer, now: Moment) {
        let max_backlog = self.max_backlog;
        self.with(|memory| {
            let refused = if !memory.is_listed || memory.view.is_blind() {
                Err(starting())
            } else if memory.backlog.bytes() > max_backlog {
                failed(CallFailureKind::Unavailable, "too much waits to be applied")
            } else {
                return memory.call(wish, answer, now);
            };
            let _ = answer.send(refused);
        });
    }
}

impl Memory {
    /// Whose an object is.
    pub fn owner(&self, key: &ObjectKey) -> Owner {
        let live = self.view.any_of(key);
        scheduler::owner(self.backlog.claim(key), live.map(AsRef::as_ref))
    }

    /// Whether its status is no business of the control plane's.
    pub fn is_of_the_scheduler(&self, key: &ObjectKey) -> bool {
        self.owner(key) == Owner::Scheduler
    }

    /// Namespaces that hold a workload of this name that the control plane is told of.
    pub fn told_namespaces<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<str>> {
        self.view.namespaces_with(name).filter(move |namespace| {
            !self.is_of_the_scheduler(&ObjectKey::new(Arc::clone(namespace), name))
        })
    }

    fn call(&mut self, wish: Wish, answer: CallAnswer, now: Moment) {
        let Wish { key, change, size } = wish;
        let owner = self.owner(&key);
        let member = match &change {
            Change::Apply(desired) => Some(desired.member()),
            Change::Delete => None,
        };
        let refused = if owner.may_be_called() {
            let member = member.as_ref();
            member.and_then(|member| self.trespass(&key, member))
        } else {
            Some(format!("{key} belongs to the control plane"))
        };
        if let Some(words) = refused {
            let _ = answer.send(failed(CallFailureKind::FailedPrecondition, words));
            return;
        }
        if owner == Owner::Nobody && change == Change::Delete {
            let _ = answer.send(Ok(()));
            return;
        }
        self.forget_lost_callers();
        if self.calls.waiting.len() >= MOST_WAITING {
            let words = "too many calls wait already";
            let _ = answer.send(failed(CallFailureKind::Unavailable, words));
            return;
        }
        tracing::info!(%key, is_delete = change == Change::Delete, "called for by the scheduler");
        self.brake.named(&key);
        self.backlog.call(&key, change, size, now);
        self.calls.wait(key.clone(), answer);
        self.want(&key, member, now);
    }

    /// Why a call may not want this: workloads of an environment share what belongs to one
    /// workspace, and the control plane has said to which.
    fn trespass(&self, key: &ObjectKey, member: &Member) -> Option<String> {
        let tenant = member.whose()?;
        let (workspace, environment) = (&tenant.workspace_id, &tenant.environment_id);
        let namespace = &key.namespace;
        let wanted = self.wanted.in_environment(namespace, environment);
        let live = self.view.members_in(namespace, environment);
        let of_states = kinds::workspaces_of_states(wanted.chain(live));
        let theirs = of_states.first()?;
        (!of_states.contains(workspace)).then(|| {
            format!(
                "environment {environment} in namespace {namespace} belongs to workspace {theirs} \
                 of the control plane, not to {workspace}"
            )
        })
    }

    /// Answers the call that waits for this object, if what became of it is known.
    pub fn tell_caller(&mut self, key: &ObjectKey) {
        if self.calls.waiting.contains_key(key)
            && let Some(result) = self.result_of(key)
        {
            if let Some(answer) = self.calls.waiting.remove(key) {
                // Who does not wait any more needs no answer.
                let _ = answer.send(result);
            }
            self.backlog.nobody_waits(key);
        }
    }

    /// Callers that left, or whose time is over, are waited for by nobody.
    pub fn forget_lost_callers(&mut self) {
        let waiting = self.calls.waiting.iter();
        let lost = waiting.filter(|(_, answer)| answer.is_closed());
        let lost: Vec<ObjectKey> = lost.map(|(key, _)| key.clone()).collect();
        for key in lost {
            self.calls.waiting.remove(&key);
            self.backlog.nobody_waits(&key);
        }
    }

    /// Answers the calls that wait for an object shared by workloads, should it be in trouble.
    pub fn tell_callers(&mut self) {
        let waiting: Vec<ObjectKey> = self.calls.waiting.keys().cloned().collect();
        for key in waiting {
            self.tell_caller(&key);
        }
    }

    fn result_of(&self, key: &ObjectKey) -> Option<Result<(), CallFailure>> {
        match self.backlog.claim(key) {
            Claim::Scheduler => {}
            Claim::ControlPlane => {
                let words = format!("the control plane has taken over {key}");
                return Some(failed(CallFailureKind::FailedPrecondition, words));
            }
            Claim::Nobody => return Some(Err(starting())),
        }
        if let Ok(Change::Apply(desired)) = &self.backlog.state(key)?.change
            && let Some(words) = self.trespass(key, &desired.member())
        {
            return Some(failed(CallFailureKind::FailedPrecondition, words));
        }
        let work = WorkKey::Workload(key.clone());
        match self.backlog.standing(&work)? {
            Standing::InPlace { .. } => Some(Ok(())),
            Standing::Trouble(troubled) => CallFailure::of_trouble(&troubled.trouble).map(Err),
            Standing::Blocked(on) => on.into_iter().find_map(|shared| {
                let troubled = self.backlog.trouble_of(&WorkKey::Shared(shared))?;
                CallFailure::of_trouble(&troubled.trouble).map(Err)
            }),
            Standing::Queued { .. } | Standing::Applying | Standing::Contested { .. } => None,
        }
    }

    /// What keeps an object from being as it is wanted, in words.
    pub fn waits_for(&self, key: &ObjectKey) -> Option<String> {
        let trouble = |key: &WorkKey| {
            let troubled = self.backlog.trouble_of(key)?;
            Some(troubled.trouble.to_string())
        };
        let work = WorkKey::Workload(key.clone());
        trouble(&work).or_else(|| match self.backlog.standing(&work)? {
            Standing::Blocked(on) => {
                let mut whys = on.iter().cloned().map(WorkKey::Shared);
                let why = whys.find_map(|shared| trouble(&shared));
                why.or_else(|| Some(format!("{} is not in place yet", on.first()?)))
            }
            Standing::InPlace { .. }
            | Standing::Queued { .. }
            | Standing::Applying
            | Standing::Contested { .. }
            | Standing::Trouble(_) => None,
        })
    }
}
