use std::time::Duration;

use krane_actors::chance::Chance;
use krane_actors::store::Store;
use krane_domain::ids::{Controller, Moment};
use krane_domain::kinds::Rules;

use super::*;
use crate::admin::model::{Epoch, controllers};

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

#[test]
fn an_api_server_that_no_controller_ever_reached_is_one_problem() {
    let controllers = Controller::ALL.map(unlisted);
    let [first, second, third] = Controller::ALL;
    let away = "connection refused";
    let tree = [
        failed(first, away, seconds(9)),
        failed(second, away, seconds(7)),
        failed(third, "forbidden", seconds(8)),
    ];
    let mut findings = Findings::default();
    look(&controllers, &tree, &mut findings);
    let told: Vec<_> = findings
        .problems
        .iter()
        .map(|it| (it.what.as_str(), it.why.as_deref(), it.next_try))
        .collect();
    let all = "deployments, sentinels could not list the cluster's objects";
    let one = "cilium could not list the cluster's objects";
    assert_eq!(
        told,
        [
            (all, Some(away), Some(at(seconds(7)))),
            (one, Some("forbidden"), Some(at(seconds(8)))),
        ]
    );
    assert_eq!(
        findings.problems[0].controllers,
        ["deployments", "sentinels"]
    );
    assert_eq!(findings.problems[1].controller, Some("cilium"));
}
