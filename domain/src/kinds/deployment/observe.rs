//! What a live ReplicaSet and its pods say.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use serde::Deserialize;

use super::validate::DEFAULT_PORT;
use crate::kinds::{Member, Observation, ReportAddress, Rules};
use crate::labels;
use crate::lenient::{First, Struct, Text};
use crate::object::LiveObject;
use crate::pod::{PodDigest, PodPhase};
use crate::report::{Instance, InstanceStatus, Report};

/// What a live ReplicaSet contributes to the shared objects of its namespace; `None` when its
/// labels name no workspace or environment.
pub(super) fn member(live: &LiveObject) -> Option<Member> {
    let id = |key| live.label(key).filter(|id| !id.is_empty()).map(Arc::from);
    Some(Member::isolated(
        id(labels::WORKSPACE_ID)?,
        id(labels::ENVIRONMENT_ID)?,
        Glance::at(live).port,
    ))
}

/// What to report about a ReplicaSet with these pods (D23, D24, D25).
pub(super) fn observe(live: &LiveObject, pods: &[&PodDigest], rules: &Rules) -> Observation {
    let glance = Glance::at(live);
    let mut own: Vec<&PodDigest> = pods
        .iter()
        .copied()
        .filter(|pod| pod.owner.as_deref() == Some(&*live.uid))
        .collect();
    own.sort_by(|one, other| one.name.cmp(&other.name));

    let is_alive = |pod: &&&PodDigest| {
        !pod.is_terminating && matches!(pod.phase, PodPhase::Pending | PodPhase::Running)
    };
    let is_outdated = |pod: &&&PodDigest| {
        glance.template.is_some() && pod.template.as_deref() != glance.template.as_deref()
    };
    let outdated = own.iter().filter(is_alive).filter(is_outdated).count();
    let instances: Vec<Instance> = own
        .iter()
        .filter(is_alive)
        .filter_map(|pod| instance(pod, glance.port, rules.report_address))
        .collect();
    Observation {
        report: Report::Instances {
            key: live.reference.key(),
            instances,
        },
        outdated,
        config_error: own
            .iter()
            .filter(is_alive)
            .find_map(|pod| pod.config_error.clone()),
    }
}

/// Pods younger than this, in seconds, may still become ready.
const YOUNG: u64 = 60;

/// The pod to replace next because it was made from another template and does not serve (D16):
/// the oldest of those that say from which template they are.
pub(super) fn outdated_pod<'a>(
    live: &LiveObject,
    pods: &[&'a PodDigest],
    unix_seconds: u64,
) -> Option<&'a PodDigest> {
    let template = Glance::at(live).template?;
    pods.iter()
        .copied()
        .filter(|pod| pod.owner.as_deref() == Some(&*live.uid))
        .filter(|pod| matches!(pod.phase, PodPhase::Pending | PodPhase::Running))
        .filter(|pod| !pod.is_terminating && !pod.is_running_and_ready())
        .filter(|pod| pod.template.as_ref().is_some_and(|own| *own != template))
        .filter(|pod| pod.created_at + YOUNG < unix_seconds)
        .min_by(|one, other| (one.created_at, &one.name).cmp(&(other.created_at, &other.name)))
}

/// A pod as it is reported; `None` before it has an address.
fn instance(pod: &PodDigest, port: u16, form: ReportAddress) -> Option<Instance> {
    Some(Instance {
        pod: Arc::clone(&pod.name),
        address: address(pod.ip.as_deref()?, &pod.namespace, port, form),
        status: if pod.is_running_and_ready() {
            InstanceStatus::Running
        } else {
            InstanceStatus::Pending
        },
        cpu_millicores: pod.cpu_millicores,
        memory_mib: pod.memory_mib,
    })
}

fn address(ip: &str, namespace: &str, port: u16, form: ReportAddress) -> String {
    match form {
        ReportAddress::Dns => {
            let dashed = ip.replace(['.', ':'], "-");
            format!("{dashed}.{namespace}.pod.cluster.local:{port}")
        }
        ReportAddress::Ip => match ip.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => format!("[{ip}]:{port}"),
            Ok(IpAddr::V4(_)) | Err(_) => format!("{ip}:{port}"),
        },
    }
}

/// The two things an observation needs of a ReplicaSet, read without building its tree.
struct Glance {
    port: u16,
    template: Option<Arc<str>>,
}

impl Glance {
    fn at(live: &LiveObject) -> Self {
        let Struct(object) =
            serde_json::from_str::<Struct<Object<'_>>>(&live.content).unwrap_or_default();
        let Struct(template) = object.spec.0.template;
        let container = template.spec.0.containers.0.unwrap_or_default();
        let port = container.0.ports.0.unwrap_or_default();
        Self {
            port: port
                .0
                .container_port
                .as_str()
                .parse()
                .unwrap_or(DEFAULT_PORT),
            template: template.metadata.0.annotations.0.template.non_empty(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    spec: Struct<Spec<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    template: Struct<Template<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    metadata: Struct<Metadata<'a>>,
    #[serde(borrow)]
    spec: Struct<PodSpec<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    annotations: Struct<Annotations<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "krane.unkey.com/template")]
    template: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec<'a> {
    #[serde(borrow)]
    containers: First<Struct<Container<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container<'a> {
    #[serde(borrow)]
    ports: First<Struct<Port<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port<'a> {
    #[serde(borrow)]
    container_port: Text<'a>,
}
