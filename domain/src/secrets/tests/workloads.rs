//! Whose a pod is, by the desired states (D50, X4).

use std::time::Duration;

use crate::backlog::{Backlog, Outcome};
use crate::desired::{Change, State};
use crate::ids::ObjectKey;
use crate::invalid::Invalid;
use crate::kinds::deployment::{DeploymentInput, validate};
use crate::kinds::{Desired, Rules};
use crate::origin::Origin;
use crate::secrets::{Ownership, PodOrigin, Unproved};
use crate::testing::minimal_input;

use Ownership::{Desired as Proved, NotDesired};

const NOW: Duration = Duration::from_secs(1);

/// Of deployment `d_1` in namespace `tenant`, made by ReplicaSet `app`.
const POD: PodOrigin<'static> = PodOrigin {
    namespace: "tenant",
    replica_set: "app",
    deployment_id: "d_1",
    workspace_id: "ws_1",
    environment_id: "env_1",
    is_of_scheduler: false,
};

fn input() -> DeploymentInput {
    DeploymentInput {
        k8s_namespace: "tenant".to_owned(),
        k8s_name: "app".to_owned(),
        ..minimal_input()
    }
}

fn change(input: DeploymentInput, origin: Origin) -> Change {
    let mut desired = validate(input, &Rules::default()).unwrap();
    desired.origin = origin;
    Change::Apply(Desired::Deployment(Box::new(desired)))
}

fn state(version: u64, name: &str, change: Result<Change, Invalid>) -> State {
    State {
        key: ObjectKey::new("tenant", name),
        version,
        change,
        size: 1,
    }
}

fn desired(version: u64, input: DeploymentInput) -> State {
    let key = ObjectKey::new(&*input.k8s_namespace, &*input.k8s_name);
    State {
        key,
        ..state(version, "", Ok(change(input, Origin::ControlPlane)))
    }
}

fn invalid(version: u64) -> State {
    let problem = Invalid::new("image", "is empty", "send one");
    state(version, "app", Err(problem))
}

fn backlog(states: impl IntoIterator<Item = State>) -> Backlog {
    let mut backlog = Backlog::default();
    for state in states {
        backlog.receive(state, NOW);
    }
    backlog
}

fn judged(states: impl IntoIterator<Item = State>, pod: PodOrigin<'_>) -> Ownership {
    backlog(states).workloads().judge(&pod)
}

/// (X4) A copy of everything that `view` shows is still in another namespace, and a made-up id
/// does not help where the environment belongs to a state.
#[test]
fn only_what_a_state_of_the_deployment_names_is_proved() {
    let cases: [(&str, PodOrigin<'_>, Ownership); 9] = [
        ("its own", POD, Proved),
        (
            "another ReplicaSet of it, as after a rename",
            PodOrigin {
                replica_set: "other",
                ..POD
            },
            Proved,
        ),
        (
            "a copy elsewhere",
            PodOrigin {
                namespace: "evil",
                ..POD
            },
            NotDesired,
        ),
        (
            "another workspace",
            PodOrigin {
                workspace_id: "ws_2",
                ..POD
            },
            NotDesired,
        ),
        (
            "no workspace",
            PodOrigin {
                workspace_id: "",
                ..POD
            },
            NotDesired,
        ),
        (
            "another key ring",
            PodOrigin {
                environment_id: "env_2",
                ..POD
            },
            NotDesired,
        ),
        (
            "a made-up id elsewhere",
            PodOrigin {
                namespace: "evil",
                deployment_id: "d_x",
                ..POD
            },
            NotDesired,
        ),
        (
            "a made-up id elsewhere, with the mark of the Scheduler API",
            PodOrigin {
                namespace: "evil",
                deployment_id: "d_x",
                is_of_scheduler: true,
                ..POD
            },
            NotDesired,
        ),
        (
            "an id that no state has, in the namespace of the environment",
            PodOrigin {
                deployment_id: "d_x",
                replica_set: "x",
                ..POD
            },
            NotDesired,
        ),
    ];
    for (name, pod, expected) in cases {
        assert_eq!(judged([desired(1, input())], pod), expected, "{name}");
    }
    assert_eq!(
        judged([], POD),
        NotDesired,
        "the stream knows nothing of it"
    );
}

/// A ReplicaSet does not roll its pods: a pod of an earlier state goes on with what it has.
#[test]
fn pods_of_earlier_states_are_still_theirs() {
    let with = |change: fn(&mut DeploymentInput)| {
        let mut changed = input();
        change(&mut changed);
        changed
    };
    let another_id = with(|it| it.deployment_id = "d_2".to_owned());
    let another_name = with(|it| it.k8s_name = "app-2".to_owned());
    let another_blob = with(|it| it.encrypted_environment_variables = b"{}".to_vec());
    let delete = || state(2, "app", Ok(Change::Delete));
    let cases: [(&str, State); 5] = [
        ("another blob", desired(2, another_blob)),
        ("another id, quarantined or waiting", desired(2, another_id)),
        ("the same id under a new name", desired(2, another_name)),
        ("a state that is invalid", invalid(2)),
        ("a delete whose pods still terminate", delete()),
    ];
    for (name, second) in cases {
        assert_eq!(judged([desired(1, input()), second], POD), Proved, "{name}");
    }
    let disowned = {
        let mut backlog = backlog([desired(1, input())]);
        backlog.answer(
            &ObjectKey::new("tenant", "app"),
            Ok(Change::Delete),
            NOW * 2,
            NOW * 3,
        );
        backlog.workloads().judge(&POD)
    };
    assert_eq!(disowned, Proved, "a delete on `not_found`");
}

/// Where the only state of the very ReplicaSet does not say whose it is, nobody is refused for it,
/// unless the key ring belongs elsewhere.
#[test]
fn what_the_states_do_not_tell_is_unproved() {
    let delete = || state(1, "app", Ok(Change::Delete));
    let marked = PodOrigin {
        is_of_scheduler: true,
        ..POD
    };
    let elsewhere = || {
        let mut victim = input();
        victim.k8s_namespace = "victim".to_owned();
        victim.deployment_id = "d_victim".to_owned();
        desired(9, victim)
    };
    let cases = [
        (vec![invalid(1)], POD, Unproved::InvalidState),
        (vec![delete()], POD, Unproved::Deleted),
        (vec![], marked, Unproved::SchedulerApi),
    ];
    for (mut states, pod, why) in cases {
        assert_eq!(judged(states.clone(), pod), Ownership::Unproved(why));
        let other_set = PodOrigin {
            replica_set: "other",
            ..pod
        };
        let expected = if pod.is_of_scheduler {
            Ownership::Unproved(why)
        } else {
            NotDesired
        };
        assert_eq!(judged(states.clone(), other_set), expected, "{why:?}");
        states.push(elsewhere());
        assert_eq!(
            judged(states, pod),
            NotDesired,
            "{why:?}: of another's environment"
        );
    }
}

/// What the control plane says when it is asked about a ReplicaSet that somebody made up must not
/// open a way.
#[test]
fn a_not_found_about_a_forged_replica_set_proves_nothing() {
    let mut backlog = Backlog::default();
    backlog.answer(
        &ObjectKey::new("tenant", "app"),
        Ok(Change::Delete),
        NOW,
        NOW * 2,
    );
    assert_eq!(backlog.workloads().judge(&POD), NotDesired);
}

/// The Scheduler API's own are proved, and it takes no id of the control plane's (D32).
#[test]
fn a_call_proves_its_pods_and_takes_no_id_of_the_control_plane() {
    let called = |backlog: &mut Backlog, namespace: &str| {
        let mut input = input();
        input.k8s_namespace = namespace.to_owned();
        let key = ObjectKey::new(namespace, "app");
        assert!(backlog.call(&key, change(input, Origin::Scheduler), 1, NOW));
    };
    let elsewhere = PodOrigin {
        namespace: "called",
        ..POD
    };
    let mut backlog = Backlog::default();
    called(&mut backlog, "called");
    assert_eq!(backlog.workloads().judge(&elsewhere), Proved);
    backlog.receive(desired(1, input()), NOW);
    assert_eq!(backlog.workloads().judge(&POD), Proved);
    assert_eq!(backlog.workloads().judge(&elsewhere), NotDesired);
}

/// What is gone is forgotten, and what is kept of one object has a bound.
#[test]
fn identities_are_forgotten_with_their_object_and_at_most_four_are_kept() {
    let of = |number: u64| {
        let mut input = input();
        input.deployment_id = format!("d_{number}");
        desired(number, input)
    };
    let ids: Vec<String> = (1..=6).map(|number| format!("d_{number}")).collect();
    let mut backlog = backlog((1..=6).map(of));
    let judged = |backlog: &Backlog| -> Vec<bool> {
        let of = ids.iter().map(|id| {
            let pod = PodOrigin {
                deployment_id: id,
                ..POD
            };
            backlog.workloads().judge(&pod) == Proved
        });
        of.collect()
    };
    assert_eq!(judged(&backlog), [false, false, true, true, true, true]);
    backlog.receive(state(7, "app", Ok(Change::Delete)), NOW);
    while let Some(task) = backlog.next_for(1, NOW) {
        backlog.finish(&task.key, Outcome::NOTHING_TO_DO, NOW, 0.5);
    }
    assert!(judged(&backlog)[5]);
    backlog.forget_gone(NOW * 60);
    assert_eq!(judged(&backlog), [false; 6]);
    assert_eq!(
        format!("{:?}", backlog.workloads()),
        format!("{:?}", Backlog::default().workloads())
    );
}

#[test]
fn names_of_reasons_are_distinct() {
    let names: std::collections::BTreeSet<_> = Unproved::ALL.map(Unproved::name).into();
    assert_eq!(names.len(), Unproved::ALL.len());
}
