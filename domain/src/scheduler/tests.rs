use serde_json::Value;

use super::{Call, CallFailure, CallFailureKind, Owner, is_marked, owner, readiness_id};
use crate::backlog::{Claim, Trouble, TroubleKind};
use crate::desired::Change;
use crate::drift::{Decision, decide};
use crate::ids::Controller;
use crate::kinds::deployment::DeploymentInput;
use crate::kinds::{Desired, Rules, is_from_state};
use crate::object::{LiveObject, Rendered};
use crate::testing::{applied, full_input, lookup, minimal_input, sentinel_input};

mod feed;

const MARK: &str = "metadata.labels[\"krane.unkey.com/desired-by\"]";
const READINESS: &str = "metadata.annotations[\"unkey.com/readiness.id\"]";

fn call(input: DeploymentInput, readiness_id: Option<&str>) -> Call {
    Call::ApplyDeployment {
        input: Box::new(input),
        readiness_id: readiness_id.map(str::to_owned),
    }
}

fn sentinel_call(namespace: &str) -> Call {
    Call::ApplySentinel {
        namespace: namespace.to_owned(),
        input: Box::new(sentinel_input()),
    }
}

fn desired(call: Call) -> Desired {
    match call.into_wish(&Rules::default()).map(|wish| wish.change) {
        Ok(Change::Apply(desired)) => desired,
        other => panic!("{other:?}"),
    }
}

fn rendered(call: Call) -> Rendered {
    desired(call).render(&Rules::default(), None)
}

fn live(rendered: &Rendered) -> LiveObject {
    applied(rendered, "uid-1", 7).unwrap_or_else(|error| panic!("{error}"))
}

/// The same object as the control plane's state renders it.
fn of_the_control_plane(input: DeploymentInput) -> Rendered {
    let desired = crate::kinds::deployment::validate(input, &Rules::default());
    let desired = desired.unwrap_or_else(|invalid| panic!("{invalid}"));
    Desired::Deployment(Box::new(desired)).render(&Rules::default(), None)
}

#[test]
fn the_manifest_of_a_call() {
    insta::assert_json_snapshot!(
        "deployment",
        rendered(call(minimal_input(), Some("ready-7"))).body
    );
}

#[test]
fn a_call_renders_what_a_state_renders_and_the_mark() {
    let mut called = rendered(call(full_input(), None)).body;
    let labels = called["metadata"]["labels"]
        .as_object_mut()
        .expect("labels");
    let mark = labels.remove("krane.unkey.com/desired-by");
    assert_eq!(mark, Some(Value::from("scheduler")));
    assert_eq!(called, of_the_control_plane(full_input()).body);
}

/// Who takes a sentinel over restarts none of its pods.
#[test]
fn all_objects_of_a_sentinel_are_marked_and_none_of_its_pods() {
    let desired = desired(sentinel_call("sentinel"));
    let deployment = desired.render(&Rules::default(), None);
    let dependants = desired.dependants(&Rules::default(), &live(&deployment));
    assert_eq!(dependants.len(), 4);
    for rendered in [&deployment].into_iter().chain(&dependants) {
        let mark = lookup(&rendered.body, MARK);
        assert_eq!(mark, Some(&Value::from("scheduler")), "{rendered:?}");
    }
    let pods = &deployment.body["spec"]["template"];
    assert_eq!(lookup(pods, MARK), None);
}

#[test]
fn the_readiness_id_is_on_object_and_pods_and_is_read_from_the_live_object() {
    let rendered = rendered(call(minimal_input(), Some("ready-7")));
    for body in [&rendered.body, &rendered.body["spec"]["template"]] {
        assert_eq!(lookup(body, READINESS), Some(&Value::from("ready-7")));
    }
    assert_eq!(readiness_id(&live(&rendered)).as_deref(), Some("ready-7"));
    for none in [None, Some("")] {
        let rendered = self::rendered(call(minimal_input(), none));
        assert_eq!(lookup(&rendered.body, READINESS), None);
        assert_eq!(readiness_id(&live(&rendered)), None);
    }
}

#[test]
fn what_a_call_lacks_has_the_defaults_of_a_state() {
    let body = rendered(call(minimal_input(), None)).body;
    let port = "spec.template.spec.containers[name=deployment].ports[0].containerPort";
    assert_eq!(lookup(&body, port), Some(&Value::from(8080)));
    let command = "spec.template.spec.containers[name=deployment].command";
    assert_eq!(lookup(&body, command), None);
}

#[test]
fn a_bad_call_names_its_field() {
    let with = |edit: fn(&mut DeploymentInput)| {
        let mut input = minimal_input();
        edit(&mut input);
        call(input, None)
    };
    let delete = |namespace: &str, name: &str| Call::DeleteDeployment {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let long = "x".repeat(1025);
    for (call, field) in [
        (with(|input| input.image.clear()), "image"),
        (with(|input| input.cpu_millicores = 0), "cpu_millicores"),
        (
            with(|input| input.k8s_namespace = "kube-system".into()),
            "k8s_namespace",
        ),
        (call(minimal_input(), Some(&long)), "readiness_id"),
        (call(minimal_input(), Some("a\nb")), "readiness_id"),
        (delete("sentinel", "x"), "k8s_namespace"),
        (delete("ns", "No"), "k8s_name"),
        (sentinel_call("elsewhere"), "k8s_namespace"),
        (sentinel_call(""), "k8s_namespace"),
    ] {
        let what = format!("{call:?}");
        let invalid = call.into_wish(&Rules::default()).expect_err(&what);
        assert_eq!(invalid.field, field, "{what}");
        let failure = CallFailure::from(invalid);
        assert_eq!(failure.kind, CallFailureKind::InvalidArgument);
        assert!(failure.message.starts_with(field), "{failure}");
    }
}

#[test]
fn a_call_is_not_in_its_debug_output() {
    let mut input = minimal_input();
    input.encrypted_environment_variables = b"canary".to_vec();
    let call = call(input, Some("canary"));
    assert!(!format!("{call:?}").contains("canary"));
    let wish = call.into_wish(&Rules::default()).expect("valid");
    assert!(!format!("{wish:?}").contains("canary"));
    assert_eq!(wish.size, 518);
}

#[test]
fn calls_go_to_the_controllers_of_their_kinds() {
    assert_eq!(
        call(minimal_input(), None).controller(),
        Controller::Deployments
    );
    assert_eq!(
        sentinel_call("sentinel").controller(),
        Controller::Sentinels
    );
}

/// What is live tells whose an object is only while nobody spoke of it.
#[test]
fn whose_an_object_is() {
    let marked = live(&rendered(call(minimal_input(), None)));
    let unmarked = live(&of_the_control_plane(minimal_input()));
    assert!(is_marked(&marked) && !is_marked(&unmarked));
    for (claim, live, expected) in [
        (Claim::Nobody, None, Owner::Nobody),
        (Claim::Nobody, Some(&marked), Owner::Scheduler),
        (Claim::Nobody, Some(&unmarked), Owner::ControlPlane),
        (Claim::Scheduler, None, Owner::Scheduler),
        (Claim::Scheduler, Some(&unmarked), Owner::Scheduler),
        (Claim::ControlPlane, None, Owner::ControlPlane),
        (Claim::ControlPlane, Some(&marked), Owner::ControlPlane),
    ] {
        let owner = owner(claim, live);
        assert_eq!(owner, expected, "{claim:?} {live:?}");
        assert_eq!(owner.may_be_called(), owner != Owner::ControlPlane);
    }
}

/// A take-over is no matter of rendering: it does not wait until nothing else is to be done (D16).
#[test]
fn a_take_over_is_a_change_of_content() {
    let live = live(&rendered(call(minimal_input(), Some("ready-7"))));
    let state = of_the_control_plane(minimal_input());
    let Decision::Update { differences, .. } = decide(&state, Some(&live), None, 0) else {
        panic!("differs");
    };
    for path in [MARK, READINESS] {
        let difference = differences.iter().find(|it| it.path == path);
        let difference = difference.unwrap_or_else(|| panic!("{path}: {differences:?}"));
        assert!(is_from_state(state.reference.resource, difference));
    }
}

#[test]
fn what_the_trouble_of_an_object_means_for_a_call() {
    let trouble = |kind, code| {
        let mut trouble = Trouble::new(kind, "as the test wants it");
        trouble.code = code;
        CallFailure::of_trouble(&trouble).map(|failure| failure.kind)
    };
    for (kind, code, expected) in [
        (
            TroubleKind::Quarantined,
            Some(422),
            CallFailureKind::InvalidArgument,
        ),
        (TroubleKind::Quarantined, None, CallFailureKind::Internal),
        (
            TroubleKind::Misconfigured,
            Some(403),
            CallFailureKind::PermissionDenied,
        ),
        (
            TroubleKind::Misconfigured,
            None,
            CallFailureKind::FailedPrecondition,
        ),
        (TroubleKind::Held, None, CallFailureKind::FailedPrecondition),
        (
            TroubleKind::Transient,
            Some(503),
            CallFailureKind::Unavailable,
        ),
        (TroubleKind::Transient, Some(409), CallFailureKind::Aborted),
        (TroubleKind::Transient, None, CallFailureKind::Unavailable),
    ] {
        assert_eq!(trouble(kind, code), Some(expected), "{kind:?} {code:?}");
    }
    assert_eq!(trouble(TroubleKind::Waiting, Some(409)), None);
}
