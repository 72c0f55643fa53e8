use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{GONE, View};
use crate::ids::{Controller, ObjectKey, SharedKey, WorkKey};
use crate::kinds;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Resource};
use crate::pod::{PodDigest, PodPhase};
use crate::report::Gist;

mod property;

fn live(name: &str, uid: &str, resource_version: u64, fingerprint: u64) -> LiveObject {
    LiveObject {
        reference: ObjectRef::new(Resource::ReplicaSet, "ns", name),
        uid: uid.into(),
        resource_version,
        labels: BTreeMap::from([(labels::MANAGED_BY.into(), labels::MANAGER.into())]),
        is_terminating: false,
        fingerprint,
        content: "{}".into(),
    }
}

fn pod(name: &str, owner: &str, resource_version: u64) -> PodDigest {
    PodDigest {
        namespace: "ns".into(),
        name: name.into(),
        uid: name.into(),
        resource_version,
        created_at: 0,
        owner: Some(owner.into()),
        phase: PodPhase::Running,
        is_ready: true,
        is_terminating: false,
        ip: Some("10.0.0.1".into()),
        cpu_millicores: 0,
        memory_mib: 0,
        template: None,
        sentinel_id: None,
        config_error: None,
    }
}

fn pods_of(view: &View, uid: &str) -> Vec<Arc<PodDigest>> {
    view.pods_of(&live("any", uid, 1, 7))
}

fn workload(name: &str) -> WorkKey {
    WorkKey::Workload(ObjectKey::new("ns", name))
}

#[test]
fn a_status_change_alone_asks_nobody_to_look() {
    let mut view = View::new(Controller::Deployments);
    assert!(
        view.insert(live("a", "u1", 1, 7))
            .look
            .contains(&workload("a"))
    );
    assert!(view.insert(live("a", "u1", 2, 7)).look.is_empty());
    assert!(
        view.insert(live("a", "u1", 3, 8))
            .look
            .contains(&workload("a"))
    );
}

#[test]
fn an_older_view_never_replaces_a_newer_one() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    assert!(view.insert(live("a", "u1", 4, 9)).look.is_empty());
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "a");
    assert_eq!(view.get(&reference).map(|live| live.fingerprint), Some(7));
}

#[test]
fn a_deleted_object_does_not_come_back_through_a_late_answer() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "a");
    assert!(
        view.remove(&reference, "u1", 9)
            .look
            .contains(&workload("a"))
    );
    view.insert(live("a", "u1", 9, 7));
    assert!(view.get(&reference).is_none());
    view.insert(live("a", "u2", 7, 7));
    assert!(
        view.get(&reference).is_some(),
        "its successor is another object"
    );
}

/// Nobody but a person gives it back to a workload whose state is bad.
#[test]
fn an_object_that_gets_our_label_back_is_seen_again() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "a");
    view.remove(&reference, "u1", 6);
    assert!(view.was_ours("u1"));
    let effects = view.insert(live("a", "u1", 8, 7));
    assert!(effects.observe.contains(&ObjectKey::new("ns", "a")));
    assert!(view.get(&reference).is_some() && !view.was_ours("u1"));
    view.remove(&reference, "u1", GONE);
    view.insert(live("a", "u1", 10, 7));
    assert!(view.get(&reference).is_none(), "it was deleted");
}

/// The watch of pull secrets selects by name.
#[test]
fn an_object_shown_without_our_label_is_out_of_sight_and_still_ours() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    let mut bare = live("a", "u1", 6, 8);
    bare.labels.clear();
    for version in [6, 8] {
        bare.resource_version = version;
        view.insert(bare.clone());
        assert!(view.was_ours("u1") && view.workloads().count() == 0);
    }
    view.insert(live("a", "u1", 9, 7));
    assert_eq!(view.workloads().count(), 1);
    bare.uid = "u2".into();
    bare.resource_version = 10;
    view.insert(bare);
    assert!(!view.was_ours("u2"), "it never was");
}

#[test]
fn the_deletion_of_a_predecessor_leaves_its_successor() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    view.insert(live("a", "u2", 6, 7));
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "a");
    assert!(view.remove(&reference, "u1", 9).look.is_empty());
    assert!(view.get(&reference).is_some());
}

#[test]
fn pods_count_for_the_workload_with_their_owners_uid_whichever_came_first() {
    let mut view = View::new(Controller::Deployments);
    assert!(
        view.insert_pod(pod("p1", "u1", 1)).observe.is_empty(),
        "owner not seen yet"
    );
    let effects = view.insert(live("a", "u1", 2, 7));
    assert!(effects.observe.contains(&ObjectKey::new("ns", "a")));
    assert_eq!(pods_of(&view, "u1").len(), 1);
    let effects = view.insert_pod(pod("p2", "u1", 3));
    assert!(effects.observe.contains(&ObjectKey::new("ns", "a")));
    assert_eq!(pods_of(&view, "u1").len(), 2);
    view.insert_pod(pod("p3", "u9", 4));
    assert_eq!(pods_of(&view, "u1").len(), 2, "another owner's pod");
    assert!(!view.remove_pod("ns", "p2", "p2").observe.is_empty());
    assert_eq!(pods_of(&view, "u1").len(), 1);
}

/// linkerd/linkerd2#5939 (B14): an index by address took one pod for the other, and grew until it
/// crashed. An address that a terminating pod still has may be another's by now.
#[test]
fn pods_that_share_an_address_stay_apart_however_many_come_and_go() {
    const PAIRS: usize = 200;
    let mut view = View::new(Controller::Deployments);
    let (old, new) = (|pair| format!("old{pair}"), |pair| format!("new{pair}"));
    for name in (0..PAIRS).flat_map(|pair| [old(pair), new(pair)]) {
        view.insert(live(&name, &name, 1, 7));
    }
    let rules = kinds::Rules::default();
    for round in 0..20 {
        for pair in 0..PAIRS {
            let ip: Arc<str> = format!("10.0.{}.{}", pair / 100, pair % 100).into();
            for (owner, is_terminating) in [(old(pair), true), (new(pair), false)] {
                let former = format!("{owner}-{}", round - 1);
                view.remove_pod("ns", &former, &former);
                view.insert_pod(PodDigest {
                    is_terminating,
                    ip: Some(Arc::clone(&ip)),
                    ..pod(&format!("{owner}-{round}"), &owner, 2)
                });
            }
            let instances = |owner: &str| {
                let live = live(owner, owner, 1, 7);
                let pods = view.pods_of(&live);
                let pods: Vec<_> = pods.iter().map(AsRef::as_ref).collect();
                let seen = kinds::observe(Controller::Deployments, &live, &pods, &rules);
                seen.map(|seen| seen.report.gist())
            };
            let gist = |count| {
                Some(Gist::Instances {
                    running: count,
                    all: count,
                })
            };
            assert_eq!(instances(&old(pair)), gist(0));
            assert_eq!(instances(&new(pair)), gist(1));
        }
        assert_eq!(view.len(), (2 * PAIRS, 2 * PAIRS));
    }
}

/// After a restart nobody may speak of it any more, and its isolation policy may be gone.
#[test]
fn a_workload_seen_for_the_first_time_has_its_isolation_policy_looked_at() {
    let mut view = View::new(Controller::Deployments);
    let mut workload = live("a", "u1", 1, 7);
    workload
        .labels
        .insert(labels::ENVIRONMENT_ID.into(), "env_1".into());
    workload
        .labels
        .insert(labels::WORKSPACE_ID.into(), "ws_1".into());
    let policy = WorkKey::Shared(SharedKey::IsolationPolicy {
        namespace: "ns".into(),
        environment: "env_1".into(),
    });
    assert!(view.insert(workload.clone()).look.contains(&policy));
    workload.resource_version = 2;
    workload.fingerprint = 8;
    assert!(!view.insert(workload).look.contains(&policy));
}

/// Thousands of workloads are seen at a start, most with the port of their siblings. One with
/// another port changes the policy, whether that is in place or not (simulation, seed 1539).
#[test]
fn a_policy_is_looked_at_when_a_workload_adds_a_port_and_not_for_each_workload() {
    let mut view = View::new(Controller::Deployments);
    let key = SharedKey::IsolationPolicy {
        namespace: "ns".into(),
        environment: "env_1".into(),
    };
    let mut policy = live("p", "u0", 1, 7);
    policy.reference = kinds::shared_reference(&key);
    policy
        .labels
        .insert(labels::ENVIRONMENT_ID.into(), "env_1".into());
    let key = WorkKey::Shared(key);
    assert!(view.insert(policy).look.contains(&key));
    let workload = |name: &str, uid: &str, port: u16| {
        let mut workload = live(name, uid, 2, 7);
        for (label, value) in [
            (labels::ENVIRONMENT_ID, "env_1"),
            (labels::WORKSPACE_ID, "ws_1"),
        ] {
            workload.labels.insert(label.into(), value.into());
        }
        workload.content = format!(
            r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"ports":[{{"containerPort":{port}}}]}}]}}}}}}}}"#
        )
        .into();
        workload
    };
    assert!(view.insert(workload("a", "u1", 80)).look.contains(&key));
    assert!(!view.insert(workload("b", "u2", 80)).look.contains(&key));
    assert!(view.insert(workload("c", "u3", 81)).look.contains(&key));
}

/// Sieve, unobserved state, instaclustr/cassandra-operator#398 (C05): deletions that no event told of.
#[test]
fn a_list_that_lacks_an_object_says_it_is_gone_unless_it_was_shown_after_the_list_was_asked_for() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("old", "u1", 5, 7));
    view.insert(live("kept", "u2", 6, 7));
    view.insert_pod(pod("p1", "u2", 5));
    view.list_begins(Resource::ReplicaSet);
    view.insert(live("new", "u3", 11, 7));
    let listed = vec![live("kept", "u2", 6, 7)];
    let effects = view.replace(Resource::ReplicaSet, listed, 10);
    assert_eq!(effects.look, BTreeSet::from([workload("old")]));
    assert_eq!(view.workloads().count(), 2);
    let effects = view.replace_pods(Vec::new());
    assert_eq!(
        effects.observe,
        BTreeSet::from([ObjectKey::new("ns", "kept")])
    );
}

fn fingerprint(view: &View, name: &str) -> Option<u64> {
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", name);
    view.get(&reference).map(|live| live.fingerprint)
}

/// A cluster restored from a backup has lower versions (F3).
#[test]
fn a_complete_list_replaces_what_is_known_whatever_the_versions() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("changed", "u1", 1080, 9));
    view.insert(live("new", "u2", 1090, 7));
    view.insert(live("gone", "u3", 800, 7));
    let gone = ObjectRef::new(Resource::ReplicaSet, "ns", "gone");
    view.remove(&gone, "u3", GONE);
    view.insert_pod(pod("p1", "u1", 1070));
    let listed = || vec![live("changed", "u1", 900, 7), live("gone", "u3", 800, 7)];
    view.list_begins(Resource::ReplicaSet);
    let effects = view.replace(Resource::ReplicaSet, listed(), 1000);
    let changed = ["changed", "gone", "new"].map(workload);
    assert_eq!(effects.look, BTreeSet::from(changed));
    assert_eq!(view.workloads().count(), 2);
    assert_eq!(fingerprint(&view, "changed"), Some(7));
    assert_eq!(
        view.replace(Resource::ReplicaSet, listed(), 1000).look,
        BTreeSet::new()
    );
    let mut restored = pod("p1", "u1", 950);
    restored.is_ready = false;
    let effects = view.replace_pods(vec![restored]);
    assert_eq!(
        effects.observe,
        BTreeSet::from([ObjectKey::new("ns", "changed")])
    );
    assert!(!pods_of(&view, "u1")[0].is_ready);
    // Events count from there.
    view.insert(live("changed", "u1", 1001, 8));
    assert_eq!(fingerprint(&view, "changed"), Some(8));
}

/// The list may have been taken before what came after it was asked for.
#[test]
fn a_list_takes_nothing_back_that_came_after_it_was_asked_for() {
    let mut view = View::new(Controller::Deployments);
    for (name, uid) in [
        ("written", "u1"),
        ("deleted", "u2"),
        ("leaving", "u3"),
        ("doubted", "u4"),
    ] {
        view.insert(live(name, uid, 5, 7));
    }
    let reference = |name| ObjectRef::new(Resource::ReplicaSet, "ns", name);
    view.list_begins(Resource::ReplicaSet);
    view.insert(live("written", "u1", 12, 9));
    view.remove(&reference("deleted"), "u2", GONE);
    view.mark_leaving(&reference("leaving"), "u3");
    view.doubt(&reference("doubted"));
    let listed = [
        ("written", "u1"),
        ("deleted", "u2"),
        ("leaving", "u3"),
        ("doubted", "u4"),
    ];
    let listed = listed.map(|(name, uid)| live(name, uid, 5, 7)).to_vec();
    view.replace(Resource::ReplicaSet, listed, 10);
    assert_eq!(fingerprint(&view, "written"), Some(9));
    assert_eq!(fingerprint(&view, "deleted"), None);
    let leaving = view.get(&reference("leaving"));
    assert!(leaving.is_some_and(|live| live.is_terminating));
    assert_eq!(fingerprint(&view, "doubted"), Some(7));
}

/// A name that was deleted and made again: the backup has the former one.
#[test]
fn the_object_that_a_backup_brings_back_replaces_its_successor() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 5, 7));
    view.insert(live("a", "u2", 20, 7));
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "a");
    view.list_begins(Resource::ReplicaSet);
    view.replace(Resource::ReplicaSet, vec![live("a", "u1", 5, 7)], 10);
    assert_eq!(view.get(&reference).map(|live| &*live.uid), Some("u1"));
    assert!(!view.was_ours("u1"));
    view.forget_removed();
    assert!(!view.was_ours("u2"));
}

#[test]
fn when_one_of_two_workloads_of_a_name_goes_the_other_is_observed() {
    let mut view = View::new(Controller::Deployments);
    view.insert(live("a", "u1", 1, 7));
    let mut other = live("a", "u2", 2, 7);
    other.reference = ObjectRef::new(Resource::ReplicaSet, "other", "a");
    view.insert(other);
    assert_eq!(view.name_conflicts(), 1);
    let effects = view.remove(&ObjectRef::new(Resource::ReplicaSet, "ns", "a"), "u1", 9);
    assert!(effects.observe.contains(&ObjectKey::new("other", "a")));
    assert_eq!(view.name_conflicts(), 0);
}
