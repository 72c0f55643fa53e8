use serde_json::json;

use super::{address, member, observe, outdated_pod};
use crate::kinds::deployment::{DeploymentInput, render, validate};
use crate::kinds::{Member, Observation, ReportAddress, Rules};
use crate::object::LiveObject;
use crate::pod::{PodDigest, PodPhase};
use crate::report::{Instance, InstanceStatus, Report};
use crate::testing::{applied, applied_json, minimal_input};

fn live() -> LiveObject {
    let input = DeploymentInput {
        port: 3000,
        ..minimal_input()
    };
    let rules = Rules::default();
    let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    applied(&render(&desired, &rules, None), "rs-1", 5).unwrap_or_else(|error| panic!("{error}"))
}

fn template(live: &LiveObject) -> String {
    let value = live.value();
    let hash = value.pointer("/spec/template/metadata/annotations/krane.unkey.com~1template");
    hash.and_then(|hash| hash.as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Seconds since the Unix epoch.
const NOW: u64 = 1_800_000_000;

fn pod(name: &str) -> PodDigest {
    PodDigest {
        created_at: NOW - 3600,
        namespace: "abcdefgh".into(),
        name: name.into(),
        uid: name.into(),
        resource_version: 1,
        owner: Some("rs-1".into()),
        phase: PodPhase::Running,
        is_ready: true,
        is_terminating: false,
        ip: Some("10.0.0.5".into()),
        cpu_millicores: 250,
        memory_mib: 256,
        template: Some(template(&live()).into()),
        sentinel_id: None,
        config_error: None,
    }
}

fn observed(pods: &[PodDigest]) -> Observation {
    observe(&live(), &pods.iter().collect::<Vec<_>>(), &Rules::default())
}

fn instances(pods: &[PodDigest]) -> Vec<Instance> {
    match observed(pods).report {
        Report::Instances { key, instances } => {
            assert_eq!(key, live().reference.key());
            instances
        }
        Report::Health { .. } | Report::Gone { .. } => panic!("the ReplicaSet is there"),
    }
}

#[test]
fn a_ready_pod_is_reported_with_address_and_limits() {
    let expected = Instance {
        pod: "dep-1-a".into(),
        address: "10-0-0-5.abcdefgh.pod.cluster.local:3000".to_owned(),
        status: InstanceStatus::Running,
        cpu_millicores: 250,
        memory_mib: 256,
    };
    assert_eq!(instances(&[pod("dep-1-a")]), [expected]);
}

/// unkeyed/unkey fb7501c734, PR #5833 (A26): a starting pod was failed or took traffic too early.
#[test]
fn only_ready_running_pods_run() {
    use PodPhase::{Failed, Pending, Running, Succeeded, Unknown};
    let (running, pending) = (Some(InstanceStatus::Running), Some(InstanceStatus::Pending));
    let ip = Some("10.0.0.5");
    for (phase, is_ready, ip, is_terminating, expected) in [
        (Running, true, ip, false, running),
        (Running, false, ip, false, pending),
        (Pending, false, ip, false, pending),
        (Pending, true, ip, false, pending),
        (Pending, false, None, false, None),
        (Running, true, None, false, None),
        (Running, true, ip, true, None),
        (Pending, false, ip, true, None),
        (Failed, true, ip, false, None),
        (Succeeded, true, ip, false, None),
        (Unknown, true, ip, false, None),
    ] {
        let pod = PodDigest {
            phase,
            is_ready,
            is_terminating,
            ip: ip.map(Into::into),
            ..pod("dep-1-a")
        };
        let found = instances(&[pod]).first().map(|instance| instance.status);
        assert_eq!(
            found, expected,
            "{phase:?} {is_ready} {ip:?} {is_terminating}"
        );
    }
}

/// unkeyed/unkey 1285ff3b24, PR #6968 (A27): dead pods stayed in the report for ever, and the last
/// one's end was followed by silence.
#[test]
fn finished_pods_leave_the_report_and_an_empty_one_is_a_report() {
    let failed = |name| PodDigest {
        phase: PodPhase::Failed,
        ..pod(name)
    };
    let done = PodDigest {
        phase: PodPhase::Succeeded,
        ..pod("e")
    };
    let pods = [failed("a"), failed("b"), failed("c"), pod("d"), done];
    assert_eq!(instances(&pods).len(), 1);
    let observation = observed(&[failed("a")]);
    let key = live().reference.key();
    assert_eq!(
        observation.report,
        Report::Instances {
            key,
            instances: Vec::new()
        }
    );
    assert_eq!(observation.outdated, 0);
}

/// linkerd/linkerd2#5394, PR #5412 (B13): a finished pod's address belongs to somebody else by now. D23:
/// labels can be set by anyone, the owner's uid cannot.
#[test]
fn pods_of_another_owner_are_left_out() {
    let other = PodDigest {
        owner: Some("rs-2".into()),
        ..pod("a")
    };
    let none = PodDigest {
        owner: None,
        ..pod("b")
    };
    assert_eq!(instances(&[other, none]), []);
}

#[test]
fn instances_are_in_pod_name_order() {
    let names = |pods: &[PodDigest]| {
        instances(pods)
            .iter()
            .map(|instance| instance.pod.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[pod("c"), pod("a"), pod("b")]), ["a", "b", "c"]);
}

/// D16: pods are not rolled; those of an older template are counted.
#[test]
fn living_pods_of_another_template_are_outdated() {
    let older = |name| PodDigest {
        template: Some("older".into()),
        ..pod(name)
    };
    let unmarked = PodDigest {
        template: None,
        ..pod("d")
    };
    let leaving = PodDigest {
        is_terminating: true,
        ..older("b")
    };
    let ended = PodDigest {
        phase: PodPhase::Failed,
        ..older("c")
    };
    let observation = observed(&[older("a"), leaving, ended, unmarked, pod("e")]);
    assert_eq!(observation.outdated, 2);
    assert_eq!(observation.report.gist().to_string(), "3 of 3 running");
}

/// D16: only pods that say from which other template they are, old enough and not serving.
#[test]
fn the_oldest_unready_pod_of_another_template_is_the_one_to_replace() {
    let outdated = |name, age: u64| PodDigest {
        template: Some("older".into()),
        is_ready: false,
        created_at: NOW - age,
        ..pod(name)
    };
    let live = live();
    let choose = |pods: &[PodDigest]| {
        let pods: Vec<_> = pods.iter().collect();
        outdated_pod(&live, &pods, NOW).map(|pod| pod.name.to_string())
    };
    assert_eq!(
        choose(&[outdated("a", 61), outdated("b", 90), outdated("c", 90)]).as_deref(),
        Some("b")
    );
    for spared in [
        outdated("young", 60),
        pod("current"),
        PodDigest {
            is_ready: true,
            ..outdated("serving", 90)
        },
        PodDigest {
            template: None,
            ..outdated("unmarked", 90)
        },
        PodDigest {
            is_terminating: true,
            ..outdated("leaving", 90)
        },
        PodDigest {
            phase: PodPhase::Succeeded,
            ..outdated("ended", 90)
        },
        PodDigest {
            owner: Some("another".into()),
            ..outdated("of another", 90)
        },
    ] {
        assert_eq!(choose(&[spared]), None);
    }
}

#[test]
fn a_replica_set_without_the_annotation_has_no_outdated_pods() {
    let rules = Rules::default();
    let desired = validate(minimal_input(), &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    let mut json = applied_json(&render(&desired, &rules, None), "rs-1", 5);
    json["spec"]["template"]["metadata"]["annotations"] = json!({});
    let live = LiveObject::from_json(crate::object::Resource::ReplicaSet, json)
        .unwrap_or_else(|error| panic!("{error}"));
    let pod = pod("a");
    assert_eq!(observe(&live, &[&pod], &rules).outdated, 0);
}

#[test]
fn addresses_take_both_forms_for_both_families() {
    for (ip, form, expected) in [
        (
            "10.0.0.5",
            ReportAddress::Dns,
            "10-0-0-5.ns.pod.cluster.local:80",
        ),
        (
            "fd00::a:1",
            ReportAddress::Dns,
            "fd00--a-1.ns.pod.cluster.local:80",
        ),
        ("10.0.0.5", ReportAddress::Ip, "10.0.0.5:80"),
        ("fd00::a:1", ReportAddress::Ip, "[fd00::a:1]:80"),
    ] {
        assert_eq!(address(ip, "ns", 80, form), expected);
    }
}

#[test]
fn a_live_replica_set_is_a_member_as_its_desired_state_was() {
    let expected = Member::isolated("ws_1", "env_1", 3000);
    assert_eq!(member(&live()), Some(expected));
    let mut unlabelled = live();
    unlabelled.labels.remove("unkey.com/environment.id");
    assert_eq!(member(&unlabelled), None);
}

#[test]
fn the_default_port_stands_in_for_an_absent_one() {
    let mut odd = live();
    odd.content = "{\"spec\":{\"template\":5}}".into();
    let expected = Member::isolated("ws_1", "env_1", 8080);
    assert_eq!(member(&odd), Some(expected));
}
