//! How a workload is, in sentences: never a state without a reason.

use super::super::{Stamp, WorkloadView};
use super::PartView;

/// The most urgent first.
pub(super) fn of(
    workload: &WorkloadView,
    objects: &[PartView],
    blind_since: Option<Stamp>,
) -> String {
    let old = blind_since.map(|at| {
        let at = at.clock();
        format!("Since {at} UTC krane does not see all of the cluster; what follows was true then.")
    });
    let mut sentences: Vec<String> = old.into_iter().collect();
    sentences.push(state(workload));
    sentences.extend(differing(objects));
    if let Some(wanted) = workload.replicas {
        sentences.push(pods(workload, wanted));
    }
    sentences.extend(report(workload));
    sentences.join(" ")
}

fn state(workload: &WorkloadView) -> String {
    let version = match workload.version {
        0 => "What is wanted".to_owned(),
        version => format!("Version {version}"),
    };
    let why = workload
        .why
        .as_deref()
        .map(without_stop)
        .unwrap_or_default();
    match workload.state {
        "in place" => format!("{version} is in place."),
        "deletion held" => {
            format!("{version} is in place and its deletion is held: {why}.")
        }
        "cannot start" => format!("{version} is in place and its pods cannot start, {why}."),
        "queued" => format!("{version} waits for its turn."),
        "applying" => format!("{version} is being applied."),
        "deleting" if why.is_empty() => "It is being deleted.".to_owned(),
        "deleting" => format!("It is being deleted: {why}."),
        "contested" => format!("{version} is written again and again: {why}."),
        "quarantined" => format!("{version} is set aside: {why}."),
        "misconfigured" => format!("{version} needs a person: {why}."),
        "retrying" => format!("{version} failed and is tried again: {why}."),
        "held" => format!("{version} is on hold: {why}."),
        state => format!("{version} is {state}: {why}."),
    }
}

/// What is not as wanted in the cluster, and whose it is.
fn differing(objects: &[PartView]) -> Option<String> {
    let count: usize = objects.iter().map(|part| part.differences.len()).sum();
    let first = objects
        .iter()
        .find_map(|part| Some((part, part.differences.first()?)));
    let (part, difference) = first?;
    let by = match difference.owners.as_slice() {
        [] => String::new(),
        owners => format!(", owned by {}", owners.join(" and ")),
    };
    let path = &difference.path;
    let more = match count {
        1 => String::new(),
        many => format!(", and {} more", many - 1),
    };
    Some(format!("{} differs at {path}{by}{more}.", part.object))
}

fn pods(workload: &WorkloadView, wanted: u32) -> String {
    match (wanted, workload.pod_count) {
        (0, 0) => "No pods are wanted.".to_owned(),
        (_, 0) => "It has no pods.".to_owned(),
        _ => format!("{} pods are ready.", workload.ready_of_wanted()),
    }
}

/// Why a pod that is ready is not counted yet.
pub(super) const YOUNG: &str = "a pod of a sentinel counts when it has been ready for 30 s";

/// Whether pods of a sentinel are ready that its Deployment does not call available yet (`minReadySeconds`).
pub(super) fn is_young(workload: &WorkloadView) -> bool {
    let wanted = workload
        .replicas
        .map_or(0, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX));
    let report = workload.report.as_ref();
    report.is_some_and(|report| {
        report.health.is_some() && report.running < workload.ready.min(wanted)
    })
}

fn report(workload: &WorkloadView) -> Option<String> {
    let report = workload.report.as_ref()?;
    Some(match (report.delivered, report.refusals) {
        (true, _) if is_young(workload) => format!(
            "The control plane knows {} of them: {YOUNG}.",
            report.running
        ),
        // Of a state that cannot be read nobody is told: only of what runs.
        (true, _) if workload.replicas.is_none() => {
            "The control plane knows what runs of it.".to_owned()
        }
        (true, _) => "The control plane knows that.".to_owned(),
        (false, 0) => "The control plane is not told yet.".to_owned(),
        (false, refusals) => format!("The control plane refused the report {refusals} times."),
    })
}

fn without_stop(text: &str) -> &str {
    text.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, Level, ReportView};

    fn sentinel(ready: usize, available: usize) -> WorkloadView {
        let epoch = Epoch::new(1_800_000_000, std::time::Duration::ZERO);
        let told = ReportView {
            gone: false,
            instances: None,
            health: Some("unhealthy"),
            running: available,
            since: epoch.at(std::time::Duration::ZERO),
            delivered: true,
            delivered_at: None,
            refusals: 0,
        };
        WorkloadView {
            controller: "sentinels",
            kind: "sentinel",
            namespace: "sentinel".to_owned(),
            name: "gate".to_owned(),
            id: None,
            version: 1,
            state: "in place",
            level: Level::Good,
            why: None,
            remedy: None,
            next_try: None,
            until: None,
            replicas: Some(2),
            ready,
            pod_count: ready,
            outdated: 0,
            outdated_are_replaced: false,
            waits_to_roll: false,
            pods: Vec::new(),
            applied_at: None,
            in_place_since: None,
            report: Some(told),
        }
    }

    /// It said that the control plane knows of a pod that was reported as not available.
    #[test]
    fn a_pod_of_a_sentinel_that_is_ready_for_a_moment_is_not_known_yet() {
        let told = |ready, available| report(&sentinel(ready, available)).unwrap();
        assert_eq!(
            told(1, 0),
            "The control plane knows 0 of them: a pod of a sentinel counts when it has been ready for 30 s."
        );
        assert_eq!(told(2, 2), "The control plane knows that.");
        // One more than wanted, on its way out.
        assert_eq!(told(3, 2), "The control plane knows that.");
    }

    /// What was reported is that pods run, not that the state is set aside.
    #[test]
    fn the_control_plane_is_not_said_to_know_of_a_state_that_is_set_aside() {
        let workload = WorkloadView {
            state: "quarantined",
            why: Some("no image".to_owned()),
            replicas: None,
            ..sentinel(2, 2)
        };
        assert_eq!(
            of(&workload, &[], None),
            "Version 1 is set aside: no image. The control plane knows what runs of it."
        );
    }
}
