//! Which workloads share what, by namespace and environment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{ObjectKey, SharedKey};
use crate::kinds::Member;

/// What each workload contributes to shared objects, findable by environment and namespace.
#[derive(Clone, Debug, Default)]
pub struct Members {
    by_key: BTreeMap<ObjectKey, Member>,
    by_environment: BTreeMap<(Arc<str>, Arc<str>), BTreeSet<ObjectKey>>,
}

impl Members {
    /// Sets what a workload contributes, or that it contributes nothing. Returns the isolation
    /// policies this changes: that of the environment it left, and that of the one it is in now.
    pub fn set(&mut self, key: &ObjectKey, member: Option<Member>) -> BTreeSet<SharedKey> {
        let mut changed = BTreeSet::new();
        if self.by_key.get(key) == member.as_ref() {
            return changed;
        }
        if let Some(old) = self.by_key.remove(key) {
            let place = (Arc::clone(&key.namespace), old.environment_id);
            if let Some(keys) = self.by_environment.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_environment.remove(&place);
                }
            }
            changed.insert(policy(place));
        }
        if let Some(member) = member {
            let place = (
                Arc::clone(&key.namespace),
                Arc::clone(&member.environment_id),
            );
            changed.insert(policy(place.clone()));
            self.by_environment
                .entry(place)
                .or_default()
                .insert(key.clone());
            self.by_key.insert(key.clone(), member);
        }
        changed
    }

    /// Whether this workload contributes anything.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// The members of a shared object.
    pub fn of<'a>(&'a self, shared: &'a SharedKey) -> Box<dyn Iterator<Item = &'a Member> + 'a> {
        match shared {
            SharedKey::IsolationPolicy {
                namespace,
                environment,
            } => {
                let place = (Arc::clone(namespace), Arc::clone(environment));
                let keys = self.by_environment.get(&place).into_iter().flatten();
                Box::new(keys.filter_map(|key| self.by_key.get(key)))
            }
            SharedKey::Namespace(namespace) | SharedKey::PullSecret(namespace) => {
                let first = (Arc::clone(namespace), Arc::from(""));
                let places = self.by_environment.range(first..);
                let places = places.take_while(move |((known, _), _)| known == namespace);
                Box::new(
                    places
                        .flat_map(|(_, keys)| keys)
                        .filter_map(|key| self.by_key.get(key)),
                )
            }
        }
    }
}

fn policy((namespace, environment): (Arc<str>, Arc<str>)) -> SharedKey {
    SharedKey::IsolationPolicy {
        namespace,
        environment,
    }
}

#[cfg(test)]
mod tests {
    use super::Members;
    use crate::ids::{ObjectKey, SharedKey};
    use crate::kinds::Member;

    fn member(environment: &str, port: u16) -> Member {
        Member {
            workspace_id: "ws".into(),
            environment_id: environment.into(),
            port,
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
            let mut ports: Vec<u16> = members.of(&shared).map(|member| member.port).collect();
            ports.sort_unstable();
            ports
        };
        assert_eq!(ports(policy("prod")), [1]);
        assert_eq!(ports(SharedKey::Namespace("ns".into())), [1, 2]);
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
