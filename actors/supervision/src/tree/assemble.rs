//! From the tree and the workers' start functions to a specification.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::restart::Backoff;

use crate::supervisor::{
    ChildSpec, Preparation, PrepareFn, ResetFn, Shutdown, StartFn, SupervisorSpec, Surroundings,
    supervisor,
};
use crate::tree::{Group, Kind, Node, START_TIMEOUT, SupervisorPolicy, join};

/// Why tree and workers do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The tree has a worker that nobody can start.
    #[error("no start function for {path}")]
    NoWorker {
        /// Where.
        path: Arc<str>,
    },
    /// A path that is no worker of the tree.
    #[error("the tree has no worker {path}")]
    UnknownWorker {
        /// The path.
        path: Arc<str>,
    },
    /// The tree has a group that nobody prepares.
    #[error("no preparation for {group}")]
    NoGroup {
        /// Its name.
        group: &'static str,
    },
    /// The topmost node supervises nothing.
    #[error("{name} is a worker")]
    NoSupervisor {
        /// Its name.
        name: &'static str,
    },
}

/// Whoever works in the tree, by path.
#[derive(Clone, Default)]
pub struct Crew {
    workers: BTreeMap<Arc<str>, StartFn>,
    groups: BTreeMap<&'static str, (PrepareFn, ResetFn)>,
}

impl Crew {
    /// Adds the worker at this path.
    #[must_use]
    pub fn worker(mut self, path: impl Into<Arc<str>>, start: StartFn) -> Self {
        self.workers.insert(path.into(), start);
        self
    }

    /// Adds what a group needs before its workers start, and what throws away what they share after it was parked.
    #[must_use]
    pub fn group(mut self, name: &'static str, prepare: PrepareFn, reset: ResetFn) -> Self {
        self.groups.insert(name, (prepare, reset));
        self
    }
}

/// Makes a specification of the tree. Every worker of the tree has to be in the crew, and nobody
/// else.
pub fn assemble(
    tree: &Node,
    crew: &Crew,
    surroundings: &Surroundings,
) -> Result<SupervisorSpec, TreeError> {
    if let Some(path) = crew.workers.keys().find(|path| tree.worker(path).is_none()) {
        return Err(TreeError::UnknownWorker {
            path: Arc::clone(path),
        });
    }
    match &tree.kind {
        Kind::Worker(_) => Err(TreeError::NoSupervisor { name: tree.name }),
        Kind::Supervisor(policy) => branch(policy, &join("", tree.name), crew, surroundings),
    }
}

fn branch(
    policy: &SupervisorPolicy,
    path: &Arc<str>,
    crew: &Crew,
    surroundings: &Surroundings,
) -> Result<SupervisorSpec, TreeError> {
    let prepare = policy
        .group
        .map(|group| {
            Ok(Preparation {
                run: Arc::clone(&behind(crew, group)?.0),
                timeout: group.prepare_timeout,
            })
        })
        .transpose()?;
    let children = policy
        .children
        .iter()
        .map(|node| child(node, path, crew, surroundings));
    Ok(SupervisorSpec {
        path: Arc::clone(path),
        strategy: policy.strategy,
        intensity: policy.intensity,
        period: policy.period,
        on_exhausted: policy.on_exhausted,
        prepare,
        children: children.collect::<Result<_, _>>()?,
    })
}

fn child(
    node: &Node,
    parent: &str,
    crew: &Crew,
    surroundings: &Surroundings,
) -> Result<ChildSpec, TreeError> {
    let path = join(parent, node.name);
    let (start, start_timeout, shutdown, reset) = match &node.kind {
        Kind::Worker(policy) => {
            let start = crew.workers.get(&path).ok_or_else(|| TreeError::NoWorker {
                path: Arc::clone(&path),
            })?;
            (
                Arc::clone(start),
                Some(START_TIMEOUT),
                policy.shutdown,
                None,
            )
        }
        Kind::Supervisor(policy) => {
            let spec = branch(policy, &path, crew, surroundings)?;
            let reset = policy.group.map(|group| behind(crew, group)).transpose()?;
            let start = supervisor(spec, surroundings.clone());
            let reset = reset.map(|(_, reset)| Arc::clone(reset));
            (start, None, Shutdown::Stop(node.patience()), reset)
        }
    };
    Ok(ChildSpec {
        id: node.name,
        path,
        restart: node.restart,
        start,
        start_timeout,
        shutdown,
        backoff: Backoff::RESTART,
        reset,
    })
}

fn behind(crew: &Crew, group: Group) -> Result<&(PrepareFn, ResetFn), TreeError> {
    crew.groups
        .get(group.name)
        .ok_or(TreeError::NoGroup { group: group.name })
}
