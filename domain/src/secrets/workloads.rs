//! Whose a deployment is, as the desired states say: what a pod that asks for secrets is compared
//! with (D50).
//!
//! Labels, ids and blobs are visible with `view` and can be copied onto a ReplicaSet of one's own.
//! What cannot be copied is the namespace that the control plane named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::ids::ObjectKey;
use crate::origin::Origin;

/// Identities of one object that are kept, the newest included. A ReplicaSet does not roll its
/// pods, so pods of an earlier identity may still run.
const KEPT: usize = 4;

/// Whose a deployment is, by one desired state. Its namespace is that of the state's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadIdentity {
    /// Deployment id of the control plane.
    pub deployment_id: Arc<str>,
    /// Workspace id of the control plane.
    pub workspace_id: Arc<str>,
    /// Environment id of the control plane: the key ring.
    pub environment_id: Arc<str>,
    /// Who wants it.
    pub origin: Origin,
}

/// What the newest desired state of an object says of whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// It is a deployment of this identity.
    As(WorkloadIdentity),
    /// The state is invalid: it may not even be readable whose the object is.
    Invalid,
    /// The object is to be deleted; its pods may still terminate.
    Deleted,
}

/// A pod that passed the token checks (D30), as it and its ReplicaSet describe themselves. All but
/// the namespace may be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodOrigin<'a> {
    /// Namespace of pod and ReplicaSet.
    pub namespace: &'a str,
    /// Name of the ReplicaSet.
    pub replica_set: &'a str,
    /// Deployment id of the pod's label; empty when it has none.
    pub deployment_id: &'a str,
    /// Workspace id of the pod's label; empty when it has none.
    pub workspace_id: &'a str,
    /// Environment id of the pod's label, the key ring.
    pub environment_id: &'a str,
    /// Whether the ReplicaSet says that the Scheduler API wants it.
    pub is_of_scheduler: bool,
}

/// Why the desired states neither prove nor refute whose a pod is. Such a pod is judged by the
/// token checks alone (D30).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unproved {
    /// This process does not lead, so it follows no stream.
    Standby,
    /// The stream was not read whole in this term yet.
    StreamUnread,
    /// A ReplicaSet of the Scheduler API, from before this process started: no state of it is kept.
    SchedulerApi,
    /// The only state that this process has of the ReplicaSet is invalid.
    InvalidState,
    /// The only state that this process has of the ReplicaSet deletes it.
    Deleted,
}

impl Unproved {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Standby,
        Self::StreamUnread,
        Self::SchedulerApi,
        Self::InvalidState,
        Self::Deleted,
    ];

    /// Value of the metric label `reason`: a closed set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::StreamUnread => "stream_unread",
            Self::SchedulerApi => "scheduler_api",
            Self::InvalidState => "invalid_state",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standby => "this process is a standby and follows no stream",
            Self::StreamUnread => "this process has not read the whole stream of deployments yet",
            Self::SchedulerApi => "the Scheduler API client has not called since krane started",
            Self::InvalidState => "the only desired state that krane has of it is invalid",
            Self::Deleted => "the only desired state that krane has of it deletes it",
        })
    }
}

/// What the desired states say of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// A state of its deployment id names its namespace, workspace and environment.
    Desired,
    /// No state does, and the states are known.
    NotDesired,
    /// They do not tell.
    Unproved(Unproved),
}

/// Whose each deployment is, findable by its id and by its environment. All look-ups are
/// logarithmic.
#[derive(Clone, Debug, Default)]
pub struct DesiredWorkloads {
    objects: BTreeMap<ObjectKey, Known>,
    deployments: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// By environment: the namespaces and workspaces it is in, each with how many identities say so.
    environments: BTreeMap<Arc<str>, BTreeMap<Tenancy, usize>>,
}

/// Namespace and workspace.
type Tenancy = (Arc<str>, Arc<str>);

#[derive(Clone, Debug, Default)]
struct Known {
    /// The newest last.
    identities: Vec<WorkloadIdentity>,
    /// Why the newest state does not say whose it is.
    gap: Option<Unproved>,
}

impl DesiredWorkloads {
    /// Takes in what the newest state of an object says. Earlier identities are kept: the pods
    /// that were made by them may still run.
    pub fn name(&mut self, key: &ObjectKey, named: Named) {
        let known = self.objects.entry(key.clone()).or_default();
        let identity = match named {
            Named::As(identity) => identity,
            Named::Invalid => {
                known.gap = Some(Unproved::InvalidState);
                return;
            }
            Named::Deleted => {
                known.gap = Some(Unproved::Deleted);
                return;
            }
        };
        known.gap = None;
        if known.identities.last() == Some(&identity) {
            return;
        }
        let before = known.identities.clone();
        known.identities.retain(|earlier| {
            // What the Scheduler API may call for the control plane has given up.
            let is_given_up =
                identity.origin == Origin::Scheduler && earlier.origin == Origin::ControlPlane;
            *earlier != identity && !is_given_up
        });
        known.identities.push(identity);
        if known.identities.len() > KEPT {
            known.identities.remove(0);
        }
        let after = known.identities.clone();
        self.unlink(key, &before);
        self.link(key, &after);
    }

    /// Forgets an object.
    pub fn forget(&mut self, key: &ObjectKey) {
        if let Some(known) = self.objects.remove(key) {
            self.unlink(key, &known.identities);
        }
    }

    fn link(&mut self, key: &ObjectKey, identities: &[WorkloadIdentity]) {
        for identity in identities {
            let id = Arc::clone(&identity.deployment_id);
            self.deployments.entry(id).or_default().insert(key.clone());
            let environment = Arc::clone(&identity.environment_id);
            let tenancies = self.environments.entry(environment).or_default();
            *tenancies.entry(tenancy(key, identity)).or_default() += 1;
        }
    }

    fn unlink(&mut self, key: &ObjectKey, identities: &[WorkloadIdentity]) {
        for identity in identities {
            if let Some(keys) = self.deployments.get_mut(&identity.deployment_id) {
                keys.remove(key);
                if keys.is_empty() {
                    self.deployments.remove(&identity.deployment_id);
                }
            }
            let Some(tenancies) = self.environments.get_mut(&identity.environment_id) else {
                continue;
            };
            let tenancy = tenancy(key, identity);
            if let Some(count) = tenancies.get_mut(&tenancy) {
                *count -= 1;
                if *count == 0 {
                    tenancies.remove(&tenancy);
                }
            }
            if tenancies.is_empty() {
                self.environments.remove(&identity.environment_id);
            }
        }
    }

    /// What the states known say of a pod. Whether they are all the states there are is not
    /// judged here.
    pub fn judge(&self, pod: &PodOrigin<'_>) -> Ownership {
        if let Some(keys) = self.deployments.get(pod.deployment_id) {
            return self.judge_known(pod, keys);
        }
        // An id that is made up opens a key ring as well as a copied one does: the environment
        // must not belong elsewhere.
        if let Some(tenancies) = self.environments.get(pod.environment_id) {
            let tenancy = (Arc::from(pod.namespace), Arc::from(pod.workspace_id));
            if !tenancies.contains_key(&tenancy) {
                return Ownership::NotDesired;
            }
        }
        match self
            .objects
            .get(&ObjectKey::new(pod.namespace, pod.replica_set))
        {
            Some(Known { identities, gap }) => match gap {
                Some(gap) if identities.is_empty() => Ownership::Unproved(*gap),
                // The states of this very ReplicaSet name another id.
                Some(_) | None => Ownership::NotDesired,
            },
            None if pod.is_of_scheduler => Ownership::Unproved(Unproved::SchedulerApi),
            None => Ownership::NotDesired,
        }
    }

    fn judge_known(&self, pod: &PodOrigin<'_>, keys: &BTreeSet<ObjectKey>) -> Ownership {
        let named = || {
            let of_keys = keys
                .iter()
                .filter_map(|key| Some((key, self.objects.get(key)?)));
            of_keys
                .flat_map(|(key, known)| known.identities.iter().map(move |it| (key, it)))
                .filter(|(_, it)| *it.deployment_id == *pod.deployment_id)
        };
        let is_of_control_plane = |it: &WorkloadIdentity| matches!(it.origin, Origin::ControlPlane);
        // An id of the control plane's is no one else's to use (D32).
        let is_taken = named().any(|(_, it)| is_of_control_plane(it));
        let is_it = named().any(|(key, it)| {
            *key.namespace == *pod.namespace
                && *it.workspace_id == *pod.workspace_id
                && *it.environment_id == *pod.environment_id
                && (is_of_control_plane(it) || !is_taken)
        });
        if is_it {
            Ownership::Desired
        } else {
            Ownership::NotDesired
        }
    }
}

fn tenancy(key: &ObjectKey, identity: &WorkloadIdentity) -> Tenancy {
    (
        Arc::clone(&key.namespace),
        Arc::clone(&identity.workspace_id),
    )
}
