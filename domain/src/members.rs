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
    /// Sets what a workload contributes, or that it contributes nothing. Returns the environment
    /// it left, if it left one.
    pub fn set(&mut self, key: &ObjectKey, member: Option<Member>) -> Option<SharedKey> {
        if self.by_key.get(key) == member.as_ref() {
            return None;
        }
        let left = self.by_key.remove(key).map(|old| {
            let place = (Arc::clone(&key.namespace), old.environment_id);
            if let Some(keys) = self.by_environment.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_environment.remove(&place);
                }
            }
            let (namespace, environment) = place;
            SharedKey::IsolationPolicy {
                namespace,
                environment,
            }
        });
        if let Some(member) = member {
            let place = (
                Arc::clone(&key.namespace),
                Arc::clone(&member.environment_id),
            );
            self.by_environment
                .entry(place)
                .or_default()
                .insert(key.clone());
            self.by_key.insert(key.clone(), member);
        }
        left
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
    fn a_member_that_moves_names_the_environment_it_left() {
        let mut members = Members::default();
        let key = ObjectKey::new("ns", "a");
        assert_eq!(members.set(&key, Some(member("prod", 1))), None);
        assert_eq!(
            members.set(&key, Some(member("dev", 1))),
            Some(policy("prod"))
        );
        assert_eq!(members.set(&key, None), Some(policy("dev")));
        assert_eq!(members.of(&policy("dev")).count(), 0);
    }
}
