//! From the JSON of a pod to its digest, without keeping or building the rest of it.
//!
//! Every field is lenient: one odd pod must not blind krane to all others.

use std::sync::Arc;

use serde::Deserialize;

use super::{PodDigest, PodPhase};
use crate::lenient::{First, Items, Struct, Text};
use crate::object::{Resource, Undecodable};
use crate::quantity::Quantity;
use crate::rfc3339::unix_seconds;

/// Why a container waits when what it is to be made from is missing or unusable.
const CONFIG_ERROR: &str = "CreateContainerConfigError";

/// Longest message kept.
const LONGEST_MESSAGE: usize = 200;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod<'a> {
    #[serde(borrow)]
    metadata: Struct<Metadata<'a>>,
    #[serde(borrow)]
    spec: Struct<Spec<'a>>,
    #[serde(borrow)]
    status: Struct<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    resource_version: Text<'a>,
    #[serde(borrow)]
    creation_timestamp: Text<'a>,
    #[serde(borrow)]
    deletion_timestamp: Text<'a>,
    #[serde(borrow)]
    labels: Struct<Labels<'a>>,
    #[serde(borrow)]
    annotations: Struct<Annotations<'a>>,
    #[serde(borrow)]
    owner_references: Items<Struct<Owner<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels<'a> {
    #[serde(borrow, rename = "unkey.com/sentinel.id")]
    sentinel_id: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "krane.unkey.com/template")]
    template: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    controller: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    containers: First<Struct<Container<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container<'a> {
    #[serde(borrow)]
    resources: Struct<Resources<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources<'a> {
    #[serde(borrow)]
    limits: Struct<Limits<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Limits<'a> {
    #[serde(borrow)]
    cpu: Text<'a>,
    #[serde(borrow)]
    memory: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Text<'a>,
    #[serde(borrow, rename = "podIP")]
    pod_ip: Text<'a>,
    #[serde(borrow)]
    conditions: Items<Struct<Condition<'a>>>,
    #[serde(borrow, rename = "containerStatuses")]
    container_statuses: Items<Struct<ContainerStatus<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerStatus<'a> {
    #[serde(borrow)]
    state: Struct<ContainerState<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerState<'a> {
    #[serde(borrow)]
    waiting: Struct<Waiting<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    name: Text<'a>,
    #[serde(borrow)]
    status: Text<'a>,
}

impl PodDigest {
    /// The digest of a pod, from its JSON text.
    ///
    /// A pod without name or uid cannot be told from others and is refused; anything else that is
    /// absent or odd counts as unset. Limits are those of the first container, as the control
    /// plane asks for one container only.
    pub fn from_slice(json: &[u8]) -> Result<Self, Undecodable> {
        let Struct(pod) = serde_json::from_slice::<Struct<Pod<'_>>>(json)
            .map_err(|error| Undecodable::syntax(Resource::Pod, &error))?;
        let Struct(metadata) = pod.metadata;
        let Struct(status) = pod.status;
        let limits = pod
            .spec
            .0
            .containers
            .0
            .map(|container| container.0.resources.0.limits.0);
        let limits = limits.unwrap_or_default();

        let refused = |reason: &str| Undecodable {
            resource: Resource::Pod,
            name: format!("{}/{}", metadata.namespace.as_str(), metadata.name.as_str()),
            reason: reason.to_owned(),
        };
        if metadata.name.is_empty() {
            return Err(refused("no name"));
        }
        if metadata.uid.is_empty() {
            return Err(refused("no uid"));
        }
        let resource_version = metadata
            .resource_version
            .as_str()
            .parse()
            .map_err(|_| refused("no resourceVersion"))?;

        let is_true = |condition: &str| {
            let mut entries = status.conditions.0.iter().map(|Struct(entry)| entry);
            entries.any(|entry| entry.name.as_str() == condition && entry.status.as_str() == "True")
        };
        let quantity = |text: &Text<'_>| Quantity::parse(text.as_str());
        Ok(Self {
            namespace: metadata.namespace.shared(),
            name: metadata.name.shared(),
            uid: metadata.uid.shared(),
            resource_version,
            created_at: unix_seconds(metadata.creation_timestamp.as_str()).unwrap_or(0),
            owner: metadata
                .owner_references
                .0
                .iter()
                .find(|Struct(owner)| owner.controller.as_str() == "true" && !owner.uid.is_empty())
                .map(|Struct(owner)| owner.uid.shared()),
            phase: PodPhase::parse(status.phase.as_str()),
            is_ready: is_true("Ready") && is_true("ContainersReady"),
            is_terminating: !metadata.deletion_timestamp.is_empty(),
            ip: status.pod_ip.non_empty(),
            cpu_millicores: quantity(&limits.cpu).map_or(0, Quantity::thousandths),
            memory_mib: quantity(&limits.memory).map_or(0, Quantity::mebi),
            template: metadata.annotations.0.template.non_empty(),
            sentinel_id: metadata.labels.0.sentinel_id.non_empty(),
            config_error: status
                .container_statuses
                .0
                .iter()
                .map(|Struct(container)| &container.state.0.waiting.0)
                .find(|waiting| waiting.reason.as_str() == CONFIG_ERROR)
                .map(|waiting| shortened(waiting.message.as_str())),
        })
    }

    /// Takes traffic: running, ready, and not asked to stop (D24).
    pub fn is_running_and_ready(&self) -> bool {
        self.phase == PodPhase::Running && self.is_ready && !self.is_terminating
    }
}

/// At most [`LONGEST_MESSAGE`] characters of the kubelet's words.
fn shortened(message: &str) -> Arc<str> {
    let end = message.char_indices().nth(LONGEST_MESSAGE);
    end.map_or(message, |(end, _)| &message[..end]).into()
}

impl PodPhase {
    fn parse(text: &str) -> Self {
        match text {
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }
}
