mod running;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::Controller;
use krane_supervision::root::STOP_TIMEOUT;
use krane_supervision::status::Board;
use krane_supervision::supervisor::{PrepareFn, Shutdown, StartFn, Surroundings};
use krane_supervision::tree::{
    Crew, GRACE, Kind, Node, SupervisorPolicy, TreeError, assemble, picture,
};

use super::{
    LEASE_PATIENCE, RECONCILER_PATIENCE, REPORTER_PATIENCE, RPC_PATIENCE, SIDE_SERVER_PATIENCE,
    TREE, drain,
};

const WORKERS: [&str; 24] = [
    "root/lease",
    "root/heartbeat",
    "root/deployments/observer/watch",
    "root/deployments/observer/reporter",
    "root/deployments/intake/reconciler",
    "root/deployments/intake/stream",
    "root/deployments/intake/resync",
    "root/deployments/intake/replay",
    "root/sentinels/observer/watch",
    "root/sentinels/observer/reporter",
    "root/sentinels/intake/reconciler",
    "root/sentinels/intake/stream",
    "root/sentinels/intake/resync",
    "root/sentinels/intake/replay",
    // Nothing is reported about policies.
    "root/cilium/observer/watch",
    "root/cilium/intake/reconciler",
    "root/cilium/intake/stream",
    "root/cilium/intake/resync",
    "root/cilium/intake/replay",
    "root/secrets",
    "root/servers/rpc",
    "root/servers/metrics",
    "root/servers/health",
    "root/servers/admin",
];

fn surroundings() -> Surroundings {
    let board = Board::new();
    Surroundings {
        board,
        seed: 1,
        grace: GRACE,
    }
}

fn never() -> StartFn {
    Arc::new(|_| Box::pin(std::future::pending()))
}

fn crew(paths: &[&str]) -> Crew {
    let crew = paths
        .iter()
        .fold(Crew::default(), |crew, path| crew.worker(*path, never()));
    Controller::ALL.into_iter().fold(crew, |crew, which| {
        let prepare: PrepareFn = Arc::new(|| Box::pin(async { Ok(()) }));
        crew.group(which.name(), prepare, Arc::new(|| {}))
    })
}

fn policies(node: &Node) -> Vec<&SupervisorPolicy> {
    match &node.kind {
        Kind::Worker(_) => Vec::new(),
        Kind::Supervisor(policy) => [policy]
            .into_iter()
            .chain(policy.children.iter().flat_map(policies))
            .collect(),
    }
}

#[test]
fn the_picture_shows_the_tree_in_start_order() {
    let expected = "\
root (one_for_one)
├── lease
├── heartbeat
├── controller:deployments (one_for_one)
│   ├── observer (rest_for_one)
│   │   ├── watch
│   │   └── reporter
│   └── intake (rest_for_one)
│       ├── reconciler
│       ├── stream
│       ├── resync
│       └── replay
├── controller:sentinels (one_for_one)
│   ├── observer (rest_for_one)
│   │   ├── watch
│   │   └── reporter
│   └── intake (rest_for_one)
│       ├── reconciler
│       ├── stream
│       ├── resync
│       └── replay
├── controller:cilium (one_for_one)
│   ├── observer (rest_for_one)
│   │   └── watch
│   └── intake (rest_for_one)
│       ├── reconciler
│       ├── stream
│       ├── resync
│       └── replay
├── secrets
└── servers (one_for_one)
    ├── rpc
    ├── metrics
    ├── health
    └── admin
";
    assert_eq!(picture(&TREE), expected);
}

#[test]
fn a_complete_crew_fits() {
    let spec = assemble(&TREE, &crew(&WORKERS), &surroundings()).expect("everybody is there");
    let paths: Vec<_> = spec.children.iter().map(|child| &*child.path).collect();
    assert_eq!(
        paths,
        [
            "root/lease",
            "root/heartbeat",
            "root/deployments",
            "root/sentinels",
            "root/cilium",
            "root/secrets",
            "root/servers"
        ]
    );
    let is_reset: Vec<_> = spec
        .children
        .iter()
        .map(|child| child.reset.is_some())
        .collect();
    assert_eq!(
        is_reset,
        [false, false, true, true, true, false, false],
        "only controllers keep state above its workers"
    );
}

#[test]
fn whoever_is_missing_is_named() {
    for missing in WORKERS {
        let rest: Vec<_> = WORKERS
            .into_iter()
            .filter(|path| *path != missing)
            .collect();
        let error = assemble(&TREE, &crew(&rest), &surroundings()).expect_err("one is missing");
        assert_eq!(
            error,
            TreeError::NoWorker {
                path: missing.into()
            }
        );
    }
}

#[test]
fn whoever_is_too_many_is_named() {
    let stranger = "root/deployments/intake/strem";
    let paths: Vec<_> = WORKERS.into_iter().chain([stranger]).collect();
    let error = assemble(&TREE, &crew(&paths), &surroundings()).expect_err("a typo");
    assert_eq!(
        error,
        TreeError::UnknownWorker {
            path: stranger.into()
        }
    );
    // Supervisors and parts of names are no workers.
    for path in [
        "root",
        "root/deployments",
        "root/heart",
        "root/heartbeat/x",
        "heartbeat",
        "",
    ] {
        assert!(TREE.worker(path).is_none(), "{path}");
    }
}

#[test]
fn a_controller_that_nobody_prepares_is_named() {
    let crew = WORKERS
        .iter()
        .fold(Crew::default(), |crew, path| crew.worker(*path, never()));
    let error = assemble(&TREE, &crew, &surroundings()).expect_err("nobody prepares it");
    assert_eq!(
        error,
        TreeError::NoGroup {
            group: Controller::Deployments.name()
        }
    );
}

#[test]
fn the_board_knows_every_place_before_anything_runs() {
    let board = Board::new();
    TREE.declare(&board);
    let workers: BTreeSet<_> = board
        .all()
        .into_iter()
        .filter(|(_, cell)| {
            cell.facts()
                .is_some_and(|facts| facts.handler_limit.is_some())
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(workers, WORKERS.map(Arc::from).into());
    let controller = |path: &str| board.find(path)?.facts()?.group;
    assert_eq!(
        controller("root/deployments/intake"),
        Some(Controller::Deployments.name())
    );
    assert_eq!(controller("root/servers"), None);
}

#[test]
fn a_place_is_found_by_controller_and_name() {
    let (path, capacity) = TREE
        .place(Controller::Deployments.name(), "stream")
        .expect("it has a place");
    assert_eq!(&*path, "root/deployments/intake/stream");
    assert_eq!(
        capacity,
        TREE.worker(&path).expect("it is a worker").mailbox
    );
    assert_eq!(
        TREE.place(Controller::Deployments.name(), "heartbeat"),
        None
    );
}

/// Who waits longer than the tree does is killed each time something is under way.
#[test]
fn whoever_waits_for_what_it_owns_ends_before_it_is_killed() {
    for (path, waits) in [
        ("root/lease", LEASE_PATIENCE),
        ("root/deployments/observer/reporter", REPORTER_PATIENCE),
        ("root/deployments/intake/reconciler", RECONCILER_PATIENCE),
        ("root/servers/rpc", RPC_PATIENCE),
        ("root/servers/metrics", SIDE_SERVER_PATIENCE),
        ("root/servers/health", SIDE_SERVER_PATIENCE),
        ("root/servers/admin", SIDE_SERVER_PATIENCE),
    ] {
        let policy = TREE.worker(path).expect("it is in the tree");
        assert_eq!(policy.shutdown, Shutdown::Stop(waits), "{path}");
        assert!(!drain(waits).is_zero() && drain(waits) < waits, "{path}");
    }
}

#[test]
fn an_ordered_stop_fits_into_its_time() {
    let patience = TREE.patience();
    assert!(patience <= STOP_TIMEOUT, "{patience:?}");
}

#[test]
fn twenty_failures_in_a_row_spend_all_budgets_up_to_the_controller() {
    let policies = policies(&TREE);
    let controller = policies
        .iter()
        .find(|it| it.group.is_some())
        .expect("there is one");
    for node in controller.children {
        let Kind::Supervisor(group) = &node.kind else {
            continue;
        };
        // Budgets of levels multiply.
        assert!((group.intensity + 1) * (controller.intensity + 1) <= 20);
        // A group spends its budget within its period, pauses included, as often as it takes.
        assert!(controller.period >= Duration::from_mins(1) * 3);
    }
}
