use std::time::Duration;

use krane_actors::chance::Chance;
use krane_actors::store::{Store, WatchFailure};
use krane_domain::ids::{Controller, Moment};
use krane_domain::kinds::Rules;
use krane_domain::object::Resource;

use super::super::api_server;
use super::*;
use crate::model::{Epoch, ErrorView, Stamp, controllers};

fn at(moment: Moment) -> Stamp {
    Epoch::new(1_800_000_000, Duration::ZERO).at(moment)
}

fn seconds(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

/// A controller that has not seen the cluster yet.
fn unlisted(which: Controller) -> ControllerView {
    let store = Store::new(which, Rules::default(), 1 << 20, Chance::new(7));
    let epoch = Epoch::new(1_800_000_000, Duration::ZERO);
    controllers::view(&store.snapshot(), &epoch)
}

/// The supervisor of a controller that failed with this error and starts again then.
fn failed(which: Controller, error: &str, starts: Moment) -> ActorView {
    ActorView {
        path: format!("root/{}", which.name()),
        name: which.name(),
        depth: 1,
        strategy: Some("rest_for_one"),
        controller: Some(which.name()),
        state: "restarting",
        level: Level::Warn,
        since: at(Duration::ZERO),
        handling: None,
        handling_since: None,
        starts_at: Some(at(starts)),
        until: Some(at(starts)),
        last_message: None,
        last_result: None,
        handled: 0,
        restarts: 1,
        panics: 0,
        hangs: 0,
        parked: false,
        mailbox: None,
        timing: None,
        last_error: Some(ErrorView {
            at: at(Duration::ZERO),
            kind: "preparation",
            text: error.to_owned(),
        }),
        breaker: None,
        watches_broken: 0,
        trouble: None,
    }
}

/// What is told when the first lists of all controllers failed this way.
fn told(
    fails: impl Fn(Resource) -> WatchFailure,
    moment: Moment,
) -> (Option<String>, Vec<Problem>) {
    let controllers = Controller::ALL.map(|which| {
        let store = Store::new(which, Rules::default(), 1 << 20, Chance::new(7));
        for spec in which.watches(store.rules()) {
            let failure = fails(spec.resource);
            store.arrange(|memory| memory.watch_failed(spec.resource, failure, seconds(1)));
        }
        let epoch = Epoch::new(1_800_000_000, Duration::ZERO);
        controllers::view(&store.snapshot(), &epoch)
    });
    let error = |which: Controller| format!("not prepared: the first list of {which:?} failed");
    let tree = Controller::ALL.map(|which| failed(which, &error(which), seconds(9)));
    let mut findings = Findings::default();
    if !api_server::look(&controllers, at(moment), None, &mut findings) {
        look(&controllers, &tree, &mut findings);
    }
    let sentence = findings.headline.sentence().map(|(_, words)| words);
    (sentence, findings.problems)
}

#[test]
fn an_api_server_that_no_controller_ever_reached_is_one_problem_at_once() {
    let refused = |_| WatchFailure {
        is_refused: false,
        text: "connection refused".to_owned(),
    };
    for moment in [2, 60] {
        let (sentence, problems) = told(refused, seconds(moment));
        assert_eq!(
            sentence.as_deref(),
            Some("The Kubernetes API does not answer")
        );
        let [problem] = &problems[..] else {
            panic!("{problems:?}");
        };
        assert_eq!(problem.kind, ProblemKind::ApiServerAway);
        assert_eq!(problem.since, Some(at(seconds(1))));
        let why = problem.why.as_deref();
        let expected = "connection refused; nothing of the cluster was seen yet";
        assert_eq!(why, Some(expected));
    }
}

#[test]
fn rights_that_are_missing_from_the_start_are_told_with_their_kinds() {
    let forbidden = |resource: Resource| WatchFailure {
        is_refused: true,
        text: format!("403: may not list {}", resource.plural()),
    };
    let (sentence, problems) = told(forbidden, seconds(2));
    assert_eq!(sentence.as_deref(), Some("The cluster cannot be read"));
    let whose: Vec<_> = problems.iter().map(|it| it.controller).collect();
    assert_eq!(whose, Controller::ALL.map(|it| Some(it.name())));
    assert_eq!(
        problems[2].what,
        "cilium could not list Namespace, CiliumNetworkPolicy"
    );
    assert_eq!(
        (problems[2].since, problems[2].next_try),
        (Some(at(seconds(1))), Some(at(seconds(9))))
    );
    assert_eq!(
        problems[2].why.as_deref(),
        Some("403: may not list namespaces")
    );
}

#[test]
fn what_failed_without_a_list_that_failed_is_told_too() {
    let controllers = Controller::ALL.map(unlisted);
    let tree = [failed(Controller::Cilium, "no answer in 60 s", seconds(9))];
    let mut findings = Findings::default();
    look(&controllers, &tree, &mut findings);
    let [problem] = &findings.problems[..] else {
        panic!("{:?}", findings.problems);
    };
    assert_eq!(problem.what, "cilium could not list the cluster's objects");
    assert_eq!(problem.why.as_deref(), Some("no answer in 60 s"));
}
