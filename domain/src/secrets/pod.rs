//! The pod that a token names: what it must be to be given secrets.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Denial, Identity, PodOrigin};
use crate::labels;
use crate::object::Metadata;
use crate::variables::ENCRYPTED;

const REPLICA_SET: &str = "apps/v1/ReplicaSet";

/// What counts of a pod when it asks for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// `metadata.uid`.
    pub uid: String,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_terminating: bool,
    /// `status.phase` is `Succeeded` or `Failed`.
    pub is_finished: bool,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `spec.serviceAccountName`.
    pub service_account: String,
    /// `spec.nodeName`; empty before it is bound.
    pub node: String,
    /// The owner that controls it.
    pub owner: Option<ControllerOwner>,
    /// Every value of the variable that carries the encrypted secrets, in all containers.
    encrypted: Vec<String>,
}

/// An answer that is no pod. It says where, never what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server's answer is no pod: it stops making sense at line {line}, column {column}")]
pub struct UndecodablePod {
    /// Line in the answer, from 1.
    pub line: usize,
    /// Column in that line.
    pub column: usize,
}

/// `metadata.ownerReferences[]` with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerOwner {
    /// `apiVersion` and `kind`, with a slash between them: `apps/v1/ReplicaSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What a request says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The deployment it says it is of.
    pub deployment_id: &'a str,
    /// The environment it says it is of.
    pub environment_id: &'a str,
}

/// A pod that may have the secrets it was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The key ring in the vault: the environment of the pod's label, whatever the request says.
    pub key_ring: &'a str,
    /// What is compared with the desired states (D50).
    pub origin: PodOrigin<'a>,
    pod: &'a PodIdentity,
}

impl Proof<'_> {
    /// Whether the pod was started with exactly this blob.
    pub fn covers(&self, blob: &[u8]) -> Result<(), Denial> {
        let is_it = |value: &String| STANDARD.decode(value).is_ok_and(|bytes| bytes == blob);
        match &self.pod.encrypted[..] {
            [value] if is_it(value) => Ok(()),
            _ => Err(Denial::AnotherBlob),
        }
    }
}

/// Whether the pod is the one that the token is bound to, and alive.
pub fn is_same_pod(identity: &Identity, pod: Option<&PodIdentity>) -> Result<(), Denial> {
    let pod = pod.ok_or(Denial::PodGone)?;
    if pod.uid != identity.uid {
        return Err(Denial::AnotherPod);
    }
    if pod.is_terminating || pod.is_finished {
        return Err(Denial::PodEnding);
    }
    Ok(())
}

/// Whether this pod may have what the claim names. `owner` is the live ReplicaSet that the pod's
/// controller reference names, if there is one.
pub fn prove<'a>(
    identity: &'a Identity,
    pod: Option<&'a PodIdentity>,
    owner: Option<&Metadata>,
    claim: Claim<'_>,
) -> Result<Proof<'a>, Denial> {
    is_same_pod(identity, pod)?;
    let pod = pod.ok_or(Denial::PodGone)?;
    if pod.service_account != identity.service_account {
        return Err(Denial::AnotherAccount);
    }
    if identity.node.as_ref().is_some_and(|node| *node != pod.node) {
        return Err(Denial::AnotherNode);
    }
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    if label(labels::MANAGED_BY) != Some(labels::MANAGER)
        || label(labels::COMPONENT) != Some(labels::COMPONENT_DEPLOYMENT)
    {
        return Err(Denial::NotOurs);
    }
    let of = |key: &str, denial: Denial, claimed: &str| {
        let value = label(key).filter(|value| !value.is_empty() && *value == claimed);
        let annotation = pod.annotations.get(key);
        let agrees = annotation.is_none_or(|annotation| annotation == claimed);
        value.filter(|_| agrees).ok_or(denial)
    };
    let deployment = of(
        labels::DEPLOYMENT_ID,
        Denial::AnotherDeployment,
        claim.deployment_id,
    )?;
    let key_ring = of(
        labels::ENVIRONMENT_ID,
        Denial::AnotherEnvironment,
        claim.environment_id,
    )?;
    let (reference, owner) = owned(pod, owner, deployment).ok_or(Denial::NotOfAReplicaSet)?;
    let of_owner = |key: &str| owner.labels.get(key).map(String::as_str);
    // The template alone decides the labels of a pod: changed there, it would open another key ring.
    if of_owner(labels::ENVIRONMENT_ID) != Some(key_ring) {
        return Err(Denial::OwnerOfAnotherEnvironment);
    }
    let origin = PodOrigin {
        namespace: &identity.namespace,
        replica_set: &reference.name,
        deployment_id: deployment,
        workspace_id: label(labels::WORKSPACE_ID).unwrap_or_default(),
        environment_id: key_ring,
        is_of_scheduler: of_owner(labels::DESIRED_BY) == Some(labels::SCHEDULER),
    };
    Ok(Proof {
        key_ring,
        origin,
        pod,
    })
}

/// Labels can be put on any pod by whoever may create pods; a controller reference to a ReplicaSet
/// that krane manages can not be had so cheaply.
fn owned<'a, 'b>(
    pod: &'a PodIdentity,
    owner: Option<&'b Metadata>,
    deployment: &str,
) -> Option<(&'a ControllerOwner, &'b Metadata)> {
    let (reference, owner) = (pod.owner.as_ref()?, owner?);
    let label = |key: &str| owner.labels.get(key).map(String::as_str);
    let is_it = reference.kind == REPLICA_SET
        && *reference.uid == *owner.uid
        && owner.is_ours()
        && label(labels::COMPONENT) == Some(labels::COMPONENT_DEPLOYMENT)
        && label(labels::DEPLOYMENT_ID) == Some(deployment);
    is_it.then_some((reference, owner))
}

impl PodIdentity {
    /// The name of the ReplicaSet that controls it, if one does.
    pub fn replica_set(&self) -> Option<&str> {
        let owner = self.owner.as_ref()?;
        (owner.kind == REPLICA_SET).then_some(&*owner.name)
    }

    /// From the JSON of a pod. Anything odd is an error: nothing is guessed about who may have
    /// secrets.
    pub fn from_slice(json: &[u8]) -> Result<Self, UndecodablePod> {
        let pod: Pod = serde_json::from_slice(json).map_err(|problem| UndecodablePod {
            line: problem.line(),
            column: problem.column(),
        })?;
        let controller = |owner: &Owner| owner.controller == Some(true);
        let mut controllers = pod.metadata.owner_references.into_iter().filter(controller);
        let owner = controllers.next().map(|owner| ControllerOwner {
            kind: format!("{}/{}", owner.api_version, owner.kind),
            name: owner.name,
            uid: owner.uid,
        });
        let containers = pod.spec.init_containers.into_iter();
        let containers = containers.chain(pod.spec.containers);
        let variables = containers.flat_map(|container| container.env);
        Ok(Self {
            uid: pod.metadata.uid,
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            is_finished: matches!(&*pod.status.phase, "Succeeded" | "Failed"),
            labels: pod.metadata.labels,
            annotations: pod.metadata.annotations,
            service_account: pod.spec.service_account_name,
            node: pod.spec.node_name,
            owner: owner.filter(|_| controllers.next().is_none()),
            encrypted: variables
                .filter(|variable| variable.name == ENCRYPTED)
                .map(|variable| variable.value)
                .collect(),
        })
    }
}

#[derive(Deserialize)]
struct Pod {
    metadata: PodMetadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMetadata {
    uid: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    service_account_name: String,
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    env: Vec<Variable>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}
