//! Whether the cluster and what the control plane was told equal what is desired.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Delivered, Report, Status};
use kube::ResourceExt as _;

use crate::{Live, address_of};

/// How many differences a message names.
const NAMED: usize = 4;

/// What is expected of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pods {
    /// All of them run.
    Running,
    /// Whatever they do is reported as it is.
    Whatever,
}

/// Every desired workload is there as desired, runs, and is reported exactly so; nothing else of krane is there; what
/// is gone was reported as gone.
pub(crate) fn check(
    desired: &[ApplyDeployment],
    gone: &[ApplyDeployment],
    expected: Pods,
    live: &Live,
    reports: &BTreeMap<String, Delivered>,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut wanted = BTreeSet::new();
    for state in desired {
        let key = (state.k8s_namespace.clone(), state.k8s_name.clone());
        match live.replica_sets.get(&key) {
            Some(set) => {
                let pods = live.pods_of(set);
                let problem = workload(state, set, pods)
                    .and_then(|()| reported(state, pods, expected, reports.get(&state.k8s_name)));
                wrong.extend(
                    problem
                        .err()
                        .map(|problem| format!("{}/{}: {problem}", key.0, key.1)),
                );
            }
            None => wrong.push(format!("{}/{}: not there", key.0, key.1)),
        }
        wanted.insert(key);
    }
    let orphans = live.replica_sets.keys().filter(|key| !wanted.contains(key));
    wrong.extend(orphans.map(|key| format!("{}/{}: nobody wants it", key.0, key.1)));
    for state in gone {
        let report = reports
            .get(&state.k8s_name)
            .map(|delivered| &delivered.report);
        if !matches!(report, Some(Report::Deleted { .. })) {
            wrong.push(format!(
                "{}: not reported as deleted, but {report:?}",
                state.k8s_name
            ));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let named = wrong
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    Err(format!("{} differences: {named}", wrong.len()))
}

fn workload(state: &ApplyDeployment, set: &ReplicaSet, pods: &[Pod]) -> Result<(), String> {
    let spec = set.spec.clone().unwrap_or_default();
    let template = spec
        .template
        .and_then(|template| template.spec)
        .unwrap_or_default();
    let images: Vec<_> = template
        .containers
        .iter()
        .filter_map(|c| c.image.as_deref())
        .collect();
    let memory = template.containers.first().and_then(|container| {
        let limits = container.resources.as_ref()?.limits.as_ref()?;
        limits.get("memory").map(|memory| memory.0.clone())
    });
    let mebibytes = state.memory_mib;
    let right_memory = [format!("{mebibytes}Mi"), format!("{}Gi", mebibytes / 1024)];
    let id = set
        .labels()
        .get("unkey.com/deployment.id")
        .map(String::as_str);
    let checks = [
        (
            set.metadata.deletion_timestamp.is_none(),
            "it is being deleted".to_owned(),
        ),
        (
            id == Some(&state.deployment_id),
            format!("deployment id {id:?}"),
        ),
        (images == [&state.image], format!("images {images:?}")),
        (
            memory
                .as_ref()
                .is_some_and(|memory| right_memory.contains(memory)),
            format!("memory {memory:?}"),
        ),
        (
            spec.replicas == Some(state.replicas),
            format!("replicas {:?}", spec.replicas),
        ),
        (
            i32::try_from(pods.len()) == Ok(state.replicas),
            format!("{} pods of {}", pods.len(), state.replicas),
        ),
    ];
    match checks.into_iter().find(|(is_right, _)| !is_right) {
        Some((_, problem)) => Err(problem),
        None => Ok(()),
    }
}

fn reported(
    state: &ApplyDeployment,
    pods: &[Pod],
    expected: Pods,
    delivered: Option<&Delivered>,
) -> Result<(), String> {
    let report = delivered.map(|delivered| &delivered.report);
    let Some(Report::Update { instances, .. }) = report else {
        return Err(format!("reported as {report:?}"));
    };
    let told: BTreeSet<_> = instances
        .iter()
        .map(|instance| {
            (
                instance.k8s_name.clone(),
                instance.address.clone(),
                instance.status(),
            )
        })
        .collect();
    let mut real = BTreeSet::new();
    for pod in pods {
        let status = status_of(pod);
        if expected == Pods::Running && status != Some(Status::Running) {
            return Err(format!("{} does not run", pod.name_any()));
        }
        if let (Some(status), Some(address)) = (status, address_of(pod, state.port)) {
            real.insert((pod.name_any(), address, status));
        }
    }
    if told == real && instances.len() == told.len() {
        Ok(())
    } else {
        Err(format!("told {told:?}, but {real:?}"))
    }
}

/// How a pod has to be reported (D24); nothing when it is left out.
fn status_of(pod: &Pod) -> Option<Status> {
    let status = pod.status.as_ref()?;
    let is_true = |kind: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions
            .filter(|condition| condition.type_ == kind)
            .any(|condition| condition.status == "True")
    };
    match status.phase.as_deref()? {
        "Running" if is_true("Ready") && is_true("ContainersReady") => Some(Status::Running),
        "Running" | "Pending" => Some(Status::Pending),
        _ => None,
    }
}
