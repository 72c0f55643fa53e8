//! A supervision tree as data, in start order, with each policy beside the name it is for.
//!
//! [`assemble()`] makes a specification of it for the supervisors, with the workers' start functions put in.

use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::message::Message;
use crate::status::{Board, Facts};
use crate::supervisor::{OnExhausted, Restart, Shutdown, Strategy};

mod assemble;
mod picture;

pub use assemble::{Crew, TreeError, assemble};
pub use picture::picture;

/// How long a worker may take to start: it only makes its state.
pub const START_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a killed actor may take to die.
pub const GRACE: Duration = Duration::from_secs(5);

/// A place in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its name among its siblings; the last part of its path.
    pub name: &'static str,
    /// When it is started again.
    pub restart: Restart,
    /// What it is.
    pub kind: Kind,
}

/// What a place is for.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An actor that does the work.
    Worker(WorkerPolicy),
    /// A supervisor of others.
    Supervisor(SupervisorPolicy),
}

/// What holds for one worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPolicy {
    /// Messages from outside that may wait at once.
    pub mailbox: usize,
    /// How long a handler may run before the watchdog kills the worker.
    pub handler_limit: Duration,
    /// How it is stopped.
    pub shutdown: Shutdown,
}

/// What holds for one supervisor.
#[derive(Clone, Copy, Debug)]
pub struct SupervisorPolicy {
    /// Who is restarted with whom.
    pub strategy: Strategy,
    /// This many failures within the period are allowed.
    pub intensity: usize,
    /// The period.
    pub period: Duration,
    /// What happens after that.
    pub on_exhausted: OnExhausted,
    /// The group that begins here.
    pub group: Option<Group>,
    /// In start order.
    pub children: &'static [Node],
}

/// Actors that belong together, named like the supervisor at their top. What they need is prepared before they start, and what they
/// share is thrown away after they were parked.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its name, among all groups of the tree.
    pub name: &'static str,
    /// What such a group is called in pictures.
    pub role: &'static str,
    /// How long its preparation may take.
    pub prepare_timeout: Duration,
}

impl Node {
    /// The worker at this path from here, which begins with this node's own name.
    pub fn worker(&self, path: &str) -> Option<&WorkerPolicy> {
        let rest = path.strip_prefix(self.name)?;
        match (&self.kind, rest.strip_prefix('/')) {
            (Kind::Worker(policy), None) if rest.is_empty() => Some(policy),
            (Kind::Supervisor(policy), Some(rest)) => {
                policy.children.iter().find_map(|child| child.worker(rest))
            }
            (Kind::Worker(_) | Kind::Supervisor(_), _) => None,
        }
    }

    /// A vacant address for the worker at this path, with the mailbox the tree gives it.
    pub fn address<M: Message>(&self, path: &str) -> Result<Address<M>, TreeError> {
        let policy = self
            .worker(path)
            .ok_or_else(|| TreeError::UnknownWorker { path: path.into() })?;
        Ok(Address::vacant(path, policy.mailbox))
    }

    /// Path and mailbox capacity of a group's worker, by its name.
    pub fn place(&self, group: &str, name: &str) -> Option<(Arc<str>, usize)> {
        let mut place = None;
        self.walk("", None, &mut |path, node, facts| {
            if let Kind::Worker(policy) = node.kind
                && facts.group == Some(group)
                && node.name == name
            {
                place = Some((Arc::clone(path), policy.mailbox));
            }
        });
        place
    }

    /// How long this part of the tree may take to stop: one after the other.
    pub fn patience(&self) -> Duration {
        match &self.kind {
            Kind::Worker(policy) => match policy.shutdown {
                Shutdown::Stop(patience) | Shutdown::Drain(patience) => patience,
                Shutdown::Brutal => Duration::ZERO,
            },
            Kind::Supervisor(policy) => {
                policy.children.iter().map(Self::patience).sum::<Duration>()
                    + Duration::from_millis(50)
            }
        }
    }

    /// Publishes every place of the tree as not started yet.
    pub fn declare(&self, board: &Board) {
        self.walk("", None, &mut |path, _, facts| board.declare(path, facts));
    }

    /// Visits this node and all below, each before its children.
    fn walk(
        &self,
        parent: &str,
        group: Option<&'static str>,
        visit: &mut impl FnMut(&Arc<str>, &Self, Facts),
    ) {
        let path = join(parent, self.name);
        match &self.kind {
            Kind::Worker(policy) => {
                let handler_limit = Some(policy.handler_limit);
                visit(
                    &path,
                    self,
                    Facts {
                        group,
                        handler_limit,
                    },
                );
            }
            Kind::Supervisor(policy) => {
                let group = policy.group.map(|group| group.name).or(group);
                visit(
                    &path,
                    self,
                    Facts {
                        group,
                        handler_limit: None,
                    },
                );
                for child in policy.children {
                    child.walk(&path, group, visit);
                }
            }
        }
    }
}

fn join(parent: &str, name: &str) -> Arc<str> {
    if parent.is_empty() {
        name.into()
    } else {
        format!("{parent}/{name}").into()
    }
}
