//! Which pod asks for secrets, and whether they are its own.
//!
//! A request comes with a ServiceAccount token. The API server says whose it is ([`Review`]);
//! what it says must name one pod that is alive now, and that pod must be of the deployment and
//! environment that the request names and have been started with the very blob that it sends. What
//! the pod says of itself is compared with the desired states ([`DesiredWorkloads`]).

mod blob;
mod identity;
mod pod;
#[cfg(test)]
mod tests;
mod workloads;

use std::fmt;

pub use blob::{MalformedBlob, parse_blob};
pub use identity::{Identity, Review, identify};
pub use pod::{Claim, ControllerOwner, PodIdentity, Proof, UndecodablePod, is_same_pod, prove};
pub use workloads::{DesiredWorkloads, Named, Ownership, PodOrigin, Unproved, WorkloadIdentity};

/// Why a request is not answered with secrets. All of them look alike from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The request is larger than any honest one.
    TooLarge,
    /// There is no token in it.
    NoToken,
    /// The API server does not know the token, or says something against it.
    NotAuthenticated,
    /// The token was not made for krane.
    WrongAudience,
    /// It belongs to no ServiceAccount.
    NotAServiceAccount,
    /// It is bound to no pod, or not clearly to one.
    NotBoundToAPod,
    /// The pod is not there any more.
    PodGone,
    /// A pod of that name is there, and it is another one.
    AnotherPod,
    /// The pod is being deleted or has finished.
    PodEnding,
    /// The pod runs under another account.
    AnotherAccount,
    /// The token was made for another node than the pod runs on.
    AnotherNode,
    /// The pod is none that krane runs.
    NotOurs,
    /// No ReplicaSet of krane for this deployment controls the pod.
    NotOfAReplicaSet,
    /// The pod is of another deployment than the request names.
    AnotherDeployment,
    /// The pod is of another environment than the request names.
    AnotherEnvironment,
    /// Its ReplicaSet is of another environment than the pod: the template was changed.
    OwnerOfAnotherEnvironment,
    /// No desired state of the deployment names the pod's namespace, workspace and environment.
    NotDesired,
    /// The pod was started with another blob.
    AnotherBlob,
}

impl Denial {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::TooLarge,
        Self::NoToken,
        Self::NotAuthenticated,
        Self::WrongAudience,
        Self::NotAServiceAccount,
        Self::NotBoundToAPod,
        Self::PodGone,
        Self::AnotherPod,
        Self::PodEnding,
        Self::AnotherAccount,
        Self::AnotherNode,
        Self::NotOurs,
        Self::NotOfAReplicaSet,
        Self::AnotherDeployment,
        Self::AnotherEnvironment,
        Self::OwnerOfAnotherEnvironment,
        Self::NotDesired,
        Self::AnotherBlob,
    ];

    /// Value of the metric label `result`: a closed set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::NoToken => "no_token",
            Self::NotAuthenticated => "not_authenticated",
            Self::WrongAudience => "wrong_audience",
            Self::NotAServiceAccount => "not_a_service_account",
            Self::NotBoundToAPod => "not_bound_to_a_pod",
            Self::PodGone => "pod_gone",
            Self::AnotherPod => "another_pod",
            Self::PodEnding => "pod_ending",
            Self::AnotherAccount => "another_account",
            Self::AnotherNode => "another_node",
            Self::NotOurs => "not_ours",
            Self::NotOfAReplicaSet => "not_of_a_replica_set",
            Self::AnotherDeployment => "another_deployment",
            Self::AnotherEnvironment => "another_environment",
            Self::OwnerOfAnotherEnvironment => "owner_of_another_environment",
            Self::NotDesired => "not_desired",
            Self::AnotherBlob => "another_blob",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the token or the blob is larger than any krane hands out",
            Self::NoToken => "there is no token in the request",
            Self::NotAuthenticated => "the API server does not accept the token",
            Self::WrongAudience => "the token was not made for secrets.audience",
            Self::NotAServiceAccount => "the token belongs to no ServiceAccount",
            Self::NotBoundToAPod => "the token is bound to no pod, or not clearly to one",
            Self::PodGone => "the token's pod is gone",
            Self::AnotherPod => "the token's pod was replaced by another one of its name",
            Self::PodEnding => "the token's pod is being deleted or has finished",
            Self::AnotherAccount => "the token's pod runs under another ServiceAccount",
            Self::AnotherNode => "the token was made for another node",
            Self::NotOurs => "the token's pod is none that krane runs",
            Self::NotOfAReplicaSet => "no ReplicaSet of krane for the deployment controls the pod",
            Self::AnotherDeployment => "the token's pod is of another deployment",
            Self::AnotherEnvironment => "the token's pod is of another environment",
            Self::OwnerOfAnotherEnvironment => {
                "the pod's ReplicaSet is of another environment than the pod"
            }
            Self::NotDesired => {
                "no desired state of the deployment names the pod's namespace, workspace and environment"
            }
            Self::AnotherBlob => "the token's pod was started with other secrets",
        })
    }
}
