//! Which workloads share what, by namespace and environment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{ObjectKey, SharedKey};
use crate::kinds::Member;

/// What each workload contributes to shared objects, findable by environment and namespace.
#[derive(Clone, Debug, Default)]
pub struct Members {
    by_key: BTreeMap<ObjectKey, Member>,
    /// By namespace and environment: what is contributed, and by how many workloads.
    by_environment: BTreeMap<Place, BTreeMap<Member, usize>>,
}

type Place = (Arc<str>, Arc<str>);

impl Members {
    /// Sets what a workload contributes, or that it contributes nothing. Returns the isolation
    /// policies for which that adds or takes away something: one more workload that contributes the
    /// same changes none, and thousands of them come at a start.
    pub fn set(&mut self, key: &ObjectKey, member: Option<Member>) -> BTreeSet<SharedKey> {
        let mut changed = BTreeSet::new();
        if self.by_key.get(key) == member.as_ref() {
            return changed;
        }
        if let Some(old) = self.by_key.remove(key) {
            changed.extend(self.withdraw(key, &old));
        }
        if let Some(member) = member {
            let count = self
                .by_environment
                .entry(place(key, &member))
                .or_default()
                .entry(member.clone())
                .or_default();
            *count += 1;
            if *count == 1 {
                changed.extend(policy(key, &member));
            }
            self.by_key.insert(key.clone(), member);
        }
        changed
    }

    fn withdraw(&mut self, key: &ObjectKey, member: &Member) -> Option<SharedKey> {
        let place = place(key, member);
        let counts = self.by_environment.get_mut(&place)?;
        let count = counts.get_mut(member)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        counts.remove(member);
        if counts.is_empty() {
            self.by_environment.remove(&place);
        }
        policy(key, member)
    }

    /// What is contributed in one environment of a namespace, each contribution once.
    pub fn in_environment<'a>(
        &'a self,
        namespace: &Arc<str>,
        environment: &Arc<str>,
    ) -> impl Iterator<Item = &'a Member> + use<'a> {
        let place = (Arc::clone(namespace), Arc::clone(environment));
        let counts = self.by_environment.get(&place).into_iter().flatten();
        counts.map(|(member, _)| member)
    }

    /// What is contributed to a shared object, each contribution once.
    pub fn of<'a>(&'a self, shared: &'a SharedKey) -> Box<dyn Iterator<Item = &'a Member> + 'a> {
        match shared {
            SharedKey::IsolationPolicy {
                namespace,
                environment,
            } => {
                let members = self.in_environment(namespace, environment);
                Box::new(members.filter(|member| member.policy_environment().is_some()))
            }
            SharedKey::Namespace(namespace) | SharedKey::PullSecret(namespace) => {
                let first = (Arc::clone(namespace), Arc::from(""));
                let places = self.by_environment.range(first..);
                let places = places.take_while(move |((known, _), _)| known == namespace);
                Box::new(places.flat_map(|(_, counts)| counts.keys()))
            }
        }
    }
}

/// Members without an environment have their place before all environments.
fn place(key: &ObjectKey, member: &Member) -> Place {
    let tenant = member.whose();
    let environment = tenant.map(|tenant| Arc::clone(&tenant.environment_id));
    let environment = environment.unwrap_or_default();
    (Arc::clone(&key.namespace), environment)
}

fn policy(key: &ObjectKey, member: &Member) -> Option<SharedKey> {
    Some(SharedKey::IsolationPolicy {
        namespace: Arc::clone(&key.namespace),
        environment: Arc::clone(member.policy_environment()?),
    })
}

#[cfg(test)]
mod tests {
    use super::Members;
    use crate::ids::{ObjectKey, SharedKey};
    use crate::kinds::Member;
    use crate::origin::Origin;

    fn member(environment: &str, port: u16) -> Member {
        Member::isolated("ws", environment, port)
    }

    fn port(member: &Member) -> Option<u16> {
        match member {
            Member::Isolated(isolated) => Some(isolated.port),
            Member::Resident | Member::Tenant(_) => None,
        }
    }

    fn policy(environment: &str) -> SharedKey {
        SharedKey::IsolationPolicy {
            namespace: "ns".into(),
            environment: environment.into(),
        }
    }

    #[test]
    fn members_are_found_by_environment_and_by_namespace() {
        let mut members = Members::default();
        members.set(&ObjectKey::new("ns", "a"), Some(member("prod", 1)));
        members.set(&ObjectKey::new("ns", "b"), Some(member("dev", 2)));
        members.set(&ObjectKey::new("nsx", "c"), Some(member("prod", 3)));
        let ports = |shared: SharedKey| {
            let mut ports: Vec<u16> = members.of(&shared).filter_map(port).collect();
            ports.sort_unstable();
            ports
        };
        assert_eq!(ports(policy("prod")), [1]);
        assert_eq!(ports(SharedKey::Namespace("ns".into())), [1, 2]);
    }

    /// The policy is a union: it is another one only when a contribution appears or disappears.
    #[test]
    fn only_a_contribution_that_no_other_workload_makes_changes_the_policy() {
        let mut members = Members::default();
        let (a, b) = (ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b"));
        let prod: std::collections::BTreeSet<_> = [policy("prod")].into();
        assert_eq!(members.set(&a, Some(member("prod", 1))), prod);
        assert_eq!(members.set(&b, Some(member("prod", 1))), [].into());
        assert_eq!(members.set(&b, Some(member("prod", 2))), prod);
        assert_eq!(members.set(&b, Some(member("prod", 1))), prod);
        assert_eq!(members.set(&a, None), [].into());
        assert_eq!(members.of(&policy("prod")).count(), 1);
        assert_eq!(members.set(&b, None), prod);
    }

    #[test]
    fn who_only_lives_in_a_namespace_keeps_it_needed_and_changes_no_policy() {
        let mut members = Members::default();
        let key = ObjectKey::new("ns", "a");
        assert_eq!(members.set(&key, Some(Member::Resident)), [].into());
        assert_eq!(members.of(&SharedKey::Namespace("ns".into())).count(), 1);
        assert_eq!(members.of(&policy("")).count(), 0);
        assert_eq!(members.set(&key, None), [].into());
        assert_eq!(members.of(&SharedKey::Namespace("ns".into())).count(), 0);
    }

    /// Who wants it is part of what is contributed: that changes when the control plane takes over.
    #[test]
    fn tenants_are_found_by_environment_with_those_who_want_them() {
        let mut members = Members::default();
        let key = ObjectKey::new("sentinel", "s");
        let tenant = Member::tenant("ws", "prod");
        assert_eq!(members.set(&key, Some(tenant.clone())), [].into());
        let sentinel = ObjectKey::new("sentinel", "t");
        let called = tenant.clone().of(Origin::Scheduler);
        members.set(&sentinel, Some(called.clone()));
        let found = |environment: &str| -> Vec<Member> {
            let found = members.in_environment(&"sentinel".into(), &environment.into());
            found.cloned().collect()
        };
        assert_eq!(found("prod"), [tenant, called]);
        assert_eq!(found("dev"), []);
        let namespace = SharedKey::Namespace("sentinel".into());
        assert_eq!(members.of(&namespace).count(), 2);
    }

    #[test]
    fn a_member_names_the_policy_it_comes_to_and_the_one_it_leaves() {
        let mut members = Members::default();
        let key = ObjectKey::new("ns", "a");
        let (dev, prod) = (policy("dev"), policy("prod"));
        assert_eq!(
            members.set(&key, Some(member("prod", 1))),
            [prod.clone()].into()
        );
        assert_eq!(members.set(&key, Some(member("prod", 1))), [].into());
        assert_eq!(
            members.set(&key, Some(member("dev", 1))),
            [dev.clone(), prod].into()
        );
        assert_eq!(members.set(&key, None), [dev.clone()].into());
        assert_eq!(members.of(&dev).count(), 0);
    }
}
