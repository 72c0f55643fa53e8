//! The whole tree of the product, with probes for workers.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::Controller;

use krane_supervision::cause::Cause;
use krane_supervision::fault::Fault;
use krane_supervision::root::{Exit, Root, RootArguments, RootError, RootHandle, STOP_TIMEOUT};
use krane_supervision::supervisor::PrepareFn;
use krane_supervision::testing::{BadStart, Rig, Tell, pause, until};
use krane_supervision::tree::{Crew, Kind, Node, TreeError};

use crate::tree::TREE;

fn workers(node: &Node, parent: &str) -> Vec<String> {
    let path = format!("{parent}{}", node.name);
    match &node.kind {
        Kind::Worker(_) => vec![path],
        Kind::Supervisor(policy) => {
            let below = format!("{path}/");
            policy
                .children
                .iter()
                .flat_map(|child| workers(child, &below))
                .collect()
        }
    }
}

fn crew(rig: &Rig, paths: &[String]) -> Crew {
    let crew = paths.iter().fold(Crew::default(), |crew, path| {
        crew.worker(path.as_str(), rig.probe(path))
    });
    Controller::ALL.into_iter().fold(crew, |crew, which| {
        let notes = rig.clone();
        let reset = Arc::new(move || notes.note("reset", which.name()));
        let prepare: PrepareFn = Arc::new(|| Box::pin(async { Ok(()) }));
        crew.group(which.name(), prepare, reset)
    })
}

async fn start(rig: &Rig) -> (RootHandle, Vec<String>) {
    let paths = workers(&TREE, "");
    let arguments = RootArguments {
        tree: &TREE,
        crew: crew(rig, &paths),
        board: rig.board.clone(),
        seed: 1,
    };
    (
        Root::start(arguments).await.expect("the root starts"),
        paths,
    )
}

async fn all_up(rig: &Rig, paths: &[String]) {
    until("all up", || {
        paths.iter().all(|path| rig.is_up(path)) && rig.is_up("root")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_tree_starts_and_stops_in_the_reverse_order() {
    let rig = Rig::new();
    let (root, paths) = start(&rig).await;
    all_up(&rig, &paths).await;
    rig.journal();
    assert_eq!(root.stop().await, Exit::Stopped);
    let expected: Vec<_> = paths
        .iter()
        .rev()
        .map(|path| format!("stop {}", &path["root/".len()..]))
        .collect();
    assert_eq!(rig.journal(), expected);
}

#[tokio::test(start_paused = true)]
async fn stopping_again_tells_the_same_end() {
    let rig = Rig::new();
    let (root, paths) = start(&rig).await;
    all_up(&rig, &paths).await;
    let waiting = root.clone();
    let (first, second, waited) = tokio::join!(root.stop(), root.stop(), waiting.finished());
    assert_eq!(
        [first, second, waited],
        [Exit::Stopped, Exit::Stopped, Exit::Stopped]
    );
    assert_eq!(root.stop().await, Exit::Stopped);
    assert_eq!(rig.count("stop heartbeat"), 1);
}

/// unkeyed/unkey f97dba546d, 5d4bd77c30 (A65): background work ran on until the very end.
#[tokio::test(start_paused = true)]
async fn a_stop_is_over_in_time_however_long_everybody_takes() {
    let rig = Rig::new();
    let (root, paths) = start(&rig).await;
    all_up(&rig, &paths).await;
    for path in &paths {
        rig.script(path, |script| {
            script.stopping_takes = Duration::from_hours(1);
        });
    }
    let began = rig.board.now();
    assert_eq!(root.stop().await, Exit::Stopped);
    assert!(rig.board.now() - began <= STOP_TIMEOUT);
    assert!(
        rig.board
            .all()
            .iter()
            .all(|(_, cell)| cell.occupant().is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn a_tree_without_one_of_its_workers_does_not_start_at_all() {
    let rig = Rig::new();
    let mut paths = workers(&TREE, "");
    let missing = paths.pop().expect("there are some");
    let arguments = RootArguments {
        tree: &TREE,
        crew: crew(&rig, &paths),
        board: rig.board.clone(),
        seed: 1,
    };
    let error = Root::start(arguments).await.expect_err("one is missing");
    assert_eq!(
        error,
        RootError::Tree(TreeError::NoWorker {
            path: missing.into()
        })
    );
    pause(Duration::from_mins(1)).await;
    assert!(rig.journal().is_empty());
    assert!(
        rig.board
            .all()
            .iter()
            .all(|(_, cell)| cell.occupant().is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn any_worker_may_misbehave_in_any_way_and_comes_back() {
    for fault in [Fault::Panic, Fault::PanicAfter, Fault::Fail, Fault::Hang] {
        let rig = Rig::new();
        let (root, paths) = start(&rig).await;
        for path in &paths {
            all_up(&rig, &paths).await;
            let before = rig.status(path).restarts;
            assert!(rig.board.inject(path, fault.next().at("work")));
            rig.tell(path, Tell::Work);
            until("again", || rig.status(path).restarts > before).await;
            all_up(&rig, &paths).await;
            rig.tell(path, Tell::Work);
            let handled = rig.status(path).handled;
            until("works", || rig.status(path).handled > handled).await;
        }
        assert_eq!(root.stop().await, Exit::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_never_works_is_parked_again_and_again_and_the_rest_goes_on() {
    let rig = Rig::new();
    let stream = "root/deployments/intake/stream";
    rig.bad_starts(stream, BadStart::Panics, 10_000);
    let (root, _) = start(&rig).await;
    for _ in 0..4 {
        until("parked", || {
            rig.is_up("root/servers") && rig.is_parked("root/deployments")
        })
        .await;
        assert!(rig.is_up("root/heartbeat") && root.watchdog().live());
        until("back", || !rig.is_parked("root/deployments")).await;
    }
    assert_eq!(rig.count("reset deployments"), 4);
    assert_eq!(rig.count("start heartbeat"), 1);
    rig.bad_starts(stream, BadStart::Panics, 0);
    until("works at last", || rig.is_up("root/deployments")).await;
    assert_eq!(root.stop().await, Exit::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_root_that_crashes_says_so() {
    let rig = Rig::new();
    let (root, paths) = start(&rig).await;
    all_up(&rig, &paths).await;
    assert!(rig.board.kill("root"));
    assert_eq!(root.finished().await, Exit::Failed(Cause::Killed));
    assert_eq!(root.stop().await, Exit::Failed(Cause::Killed));
    until("nothing is left", || {
        rig.board
            .all()
            .iter()
            .all(|(_, cell)| cell.occupant().is_none())
    })
    .await;
}
