//! Apps beside those of the story: how krane looks with many of them, and what it costs.

use fastrand::Rng;
use krane_domain::object::{ObjectRef, Resource};
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use parking_lot::Mutex;

/// How many apps share a namespace.
const IN_A_NAMESPACE: usize = 25;

/// How many there are, and how restless they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrowdOptions {
    /// Apps beside those of the story.
    pub apps: usize,
    /// How many of them the control plane changes in a second.
    pub changes_per_second: u32,
}

/// One app, as the control plane wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    release: u32,
    replicas: i32,
}

/// The apps, as the control plane wants them.
#[derive(Debug)]
pub(super) struct Crowd {
    options: CrowdOptions,
    wanted: Mutex<(Rng, Vec<Member>)>,
}

impl Crowd {
    /// The same seed makes the same changes.
    pub(super) fn new(options: CrowdOptions, seed: u64) -> Self {
        let first = Member {
            release: 1,
            replicas: 1,
        };
        let wanted = (Rng::with_seed(seed), vec![first; options.apps]);
        Self {
            options,
            wanted: Mutex::new(wanted),
        }
    }

    pub(super) const fn options(&self) -> CrowdOptions {
        self.options
    }

    /// How many namespaces they fill.
    pub(super) const fn namespaces(&self) -> usize {
        self.options.apps.div_ceil(IN_A_NAMESPACE)
    }

    /// What the control plane wants of all of them.
    pub(super) fn states(&self) -> Vec<ApplyDeployment> {
        let (_, members) = &*self.wanted.lock();
        let members = members.iter().enumerate();
        members
            .map(|(index, member)| state(index, *member))
            .collect()
    }

    /// The control plane wants another release of one of them, and one instance of it more or less.
    pub(super) fn change(&self) -> Option<ApplyDeployment> {
        let (chance, members) = &mut *self.wanted.lock();
        if members.is_empty() {
            return None;
        }
        let index = chance.usize(..members.len());
        let member = &mut members[index];
        member.release += 1;
        member.replicas = member.replicas % 2 + 1;
        Some(state(index, *member))
    }
}

/// Where the app is in the cluster.
pub(super) fn reference(app: &ApplyDeployment) -> ObjectRef {
    ObjectRef::new(
        Resource::ReplicaSet,
        app.k8s_namespace.as_str(),
        app.k8s_name.as_str(),
    )
}

fn state(index: usize, member: Member) -> ApplyDeployment {
    let namespace = format!("crowd-{:03}", index / IN_A_NAMESPACE);
    let name = format!("app-{index:05}");
    ApplyDeployment {
        image: format!("registry.example/{name}:1.{}.0", member.release),
        replicas: member.replicas,
        ..samples::deployment(&namespace, &name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn crowd(apps: usize) -> Crowd {
        let options = CrowdOptions {
            apps,
            changes_per_second: 1,
        };
        Crowd::new(options, 7)
    }

    #[test]
    fn everyone_is_somebody_else() {
        let crowd = crowd(250);
        let states = crowd.states();
        let names: BTreeSet<_> = states.iter().map(reference).collect();
        let namespaces: BTreeSet<_> = states.iter().map(|state| &state.k8s_namespace).collect();
        assert_eq!((names.len(), namespaces.len()), (250, crowd.namespaces()));
    }

    #[test]
    fn a_change_is_wanted_from_then_on() {
        let crowd = crowd(3);
        let before = crowd.states();
        let changed = crowd.change().unwrap();
        assert!(!before.contains(&changed));
        assert!(crowd.states().contains(&changed));
    }

    #[test]
    fn nobody_changes_where_nobody_is() {
        assert_eq!(crowd(0).change(), None);
    }
}
