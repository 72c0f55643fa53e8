use std::time::Duration;

use krane_actors::chance::Chance;
use krane_actors::store::Store;
use krane_domain::ids::{Controller, Moment};
use krane_domain::kinds::Rules;
use krane_ports::StreamEnd;

use super::*;
use crate::model::{Epoch, controllers};

const MINUTE: Moment = Duration::from_secs(60);

fn epoch() -> Epoch {
    Epoch::new(1_800_000_000, Duration::ZERO)
}

/// A controller whose stream ended with this code a minute ago; none, if it is open.
fn controller(which: Controller, code: Option<&'static str>, failed_calls: u32) -> ControllerView {
    let store = Store::new(which, Rules::default(), 1 << 20, Chance::new(7));
    store.inside(|memory| {
        memory.stream.opened_at = code.is_none().then_some(Duration::ZERO);
        memory.stream.down_since = code.map(|_| Duration::ZERO);
        memory.stream.last_end = code.map(|code| StreamEnd {
            code,
            message: "so it said".to_owned(),
            is_oversize: false,
        });
        for _ in 0..failed_calls {
            memory.breaker.transport_failure(Duration::ZERO, 0.5);
        }
    });
    controllers::view(&store.snapshot(), &epoch())
}

fn found(controllers: &[ControllerView], now: Moment) -> (Option<String>, Vec<Problem>) {
    let mut findings = Findings::default();
    let controllers: Vec<&ControllerView> = controllers.iter().collect();
    look(&controllers, epoch().at(now), &mut findings);
    let sentence = findings.headline.sentence().map(|(_, words)| words);
    (sentence, findings.problems)
}

#[test]
fn a_control_plane_that_answers_nobody_is_told_once_in_plain_words() {
    let all = Controller::ALL.map(|it| controller(it, Some("unavailable"), 5));
    let (sentence, problems) = found(&all, MINUTE);
    assert_eq!(
        sentence.as_deref(),
        Some("The control plane does not answer")
    );
    let [problem] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert_eq!(problem.what, "The control plane does not answer");
    let why = problem.why.as_deref().unwrap();
    assert_eq!(
        why,
        "deployments, sentinels and policies are not heard since 08:00:00 UTC: what runs goes on \
         running, nothing new comes in and reports wait (unavailable: so it said)"
    );
    assert_eq!(problem.kind, ProblemKind::ControlPlaneAway);
    assert_eq!(problem.controllers, ["deployments", "sentinels", "cilium"]);
    assert_eq!(
        (problem.controller, problem.code.as_deref()),
        (None, Some("unavailable"))
    );
}

#[test]
fn who_alone_does_not_hear_the_control_plane_is_named() {
    let [first, second, third] = Controller::ALL;
    let all = [
        controller(first, None, 0),
        controller(second, Some("deadline_exceeded"), 0),
        controller(third, None, 5),
    ];
    let (sentence, problems) = found(&all, MINUTE);
    let expected = "Sentinels do not hear the control plane, cilium cannot reach the control plane";
    assert_eq!(sentence.as_deref(), Some(expected));
    let what: Vec<&str> = problems.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "The control plane does not answer about sentinels",
            "Reports and questions about policies wait"
        ]
    );
}

#[test]
fn a_token_that_is_refused_is_told_once_with_what_to_do() {
    let all = Controller::ALL.map(|it| controller(it, Some("unauthenticated"), 0));
    let (sentence, problems) = found(&all, MINUTE);
    let expected = "Deployments, sentinels and cilium have no stream";
    assert_eq!(sentence.as_deref(), Some(expected));
    let [problem] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert_eq!(
        problem.what,
        "There is no stream of deployments, sentinels and policies"
    );
    assert!(
        problem.remedy.contains("check control.token"),
        "{problem:?}"
    );
}

/// It is opened again after 1 to 5 s.
#[test]
fn a_stream_that_was_just_lost_is_no_silence() {
    let all = Controller::ALL.map(|it| controller(it, Some("unavailable"), 0));
    let (_, problems) = found(&all, Duration::from_secs(3));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].kind, ProblemKind::StreamDown);
}
