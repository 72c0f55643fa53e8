//! The whole agent over a small world.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_ports::Server;
use krane_supervision::root::{Exit, RootHandle};
use krane_supervision::status::Activity;
use krane_supervision::tree::picture;
use prometheus::Registry;
use tokio_util::sync::CancellationToken;

use super::{Agent, AgentParts, Servers};
use crate::chance::Chance;
use crate::controller::ControllerParts;
use crate::lease::{Election, Leadership};
use crate::metrics::ControllerFamilies;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::testing::{FakeCluster, FakeControlPlane, StoppedClock, input, wants};
use crate::tree::TREE;

mod forbidden;
mod standby;

struct Quiet;

#[async_trait]
impl Server for Quiet {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        stop.cancelled().await;
        Ok(())
    }
}

fn agent(cluster: &FakeCluster, control_plane: &FakeControlPlane, board: &StatusBoard) -> Agent {
    agent_that(cluster, control_plane, board, Leadership::default(), None)
}

fn agent_that(
    cluster: &FakeCluster,
    control_plane: &FakeControlPlane,
    board: &StatusBoard,
    leadership: Leadership,
    election: Option<Election>,
) -> Agent {
    let registry = Registry::new();
    agent_counted(
        cluster,
        control_plane,
        board,
        leadership,
        election,
        &registry,
    )
}

fn agent_counted(
    cluster: &FakeCluster,
    control_plane: &FakeControlPlane,
    board: &StatusBoard,
    leadership: Leadership,
    election: Option<Election>,
    registry: &Registry,
) -> Agent {
    let is_region_known = Arc::new(AtomicBool::new(false));
    let families = ControllerFamilies::register(registry).expect("registers");
    let parts = AgentParts {
        observes: false,
        controllers: Controller::ALL
            .into_iter()
            .map(|controller| ControllerParts {
                controller,
                rules: Rules::default(),
                registry_password: None,
                cluster: Arc::new(cluster.clone()),
                control_plane: Arc::new(match controller {
                    Controller::Deployments => control_plane.clone(),
                    // These want nothing here.
                    Controller::Sentinels | Controller::Cilium => FakeControlPlane::default(),
                }),
                clock: Arc::new(StoppedClock),
                board: board.clone(),
                max_lanes: 8,
                max_backlog: 1 << 20,
                resync_interval: Duration::from_secs(60),
                replay_interval: Some(Duration::from_secs(600)),
                max_deletes_percent: 10,
                writes: Arc::new(AtomicBool::new(true)),
                may_upgrade: true,
                leadership: leadership.clone(),
                is_region_known: Arc::clone(&is_region_known),
                chance: Chance::new(7),
                metrics: families.of(controller),
            })
            .collect(),
        heartbeat: Arc::new(control_plane.clone()),
        is_region_known,
        leadership,
        election,
        secrets: None,
        board: board.clone(),
        seed: 7,
    };
    Agent::new(parts, registry).expect("tree and workers fit")
}

fn servers() -> Servers {
    Servers {
        rpc: Arc::new(Quiet),
        metrics: Arc::new(Quiet),
        health: Arc::new(Quiet),
        admin: Arc::new(Quiet),
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_so() {
            return;
        }
        crate::testing::pass(Duration::from_millis(10)).await;
    }
    panic!("never so: {what}");
}

/// The paths a picture of the tree draws.
fn paths_of(picture: &str) -> BTreeSet<String> {
    let mut above: Vec<String> = Vec::new();
    let mut paths = BTreeSet::new();
    for line in picture.lines().filter(|line| !line.trim().is_empty()) {
        let depth = line
            .chars()
            .take_while(|letter| " │├└─".contains(*letter))
            .count()
            / 4;
        let label = line.trim_start_matches([' ', '│', '├', '└', '─']);
        let name = label.split(' ').next().unwrap_or_default();
        let name = name.trim_start_matches("controller:");
        above.truncate(depth);
        above.push(name.to_owned());
        paths.insert(above.join("/"));
    }
    paths
}

#[tokio::test(start_paused = true)]
async fn the_tree_that_runs_is_the_one_the_architecture_draws() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../ARCHITECTURE.md");
    let text = std::fs::read_to_string(file).expect("ARCHITECTURE.md stands at the root");
    let drawn = text
        .split("```text\n")
        .find(|block| block.starts_with("root "))
        .and_then(|rest| rest.split("```").next());
    let drawn = drawn.expect("a picture of the tree");
    assert_eq!(drawn, picture(&TREE), "redraw it from this");

    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    let board = StatusBoard::new();
    let root = agent(&cluster, &control_plane, &board)
        .start(servers())
        .await
        .expect("starts");
    let up = || -> BTreeSet<String> {
        let all = board.all().into_iter();
        all.filter(|(_, cell)| cell.occupant().is_some())
            .map(|(path, _)| path.to_string())
            .collect()
    };
    let drawn = paths_of(drawn);
    until("everything drawn runs", || up().is_superset(&drawn)).await;
    assert_eq!(up(), drawn, "and nothing else");
    assert_eq!(root.stop().await, Exit::Stopped);
    assert_eq!(up(), BTreeSet::new());
    assert!(
        board
            .all()
            .iter()
            .all(|(_, cell)| cell.read().activity == Activity::Stopped)
    );
}

/// unkeyed/unkey 1953c75247, PR #4782 (A64): stopping twice closed a closed channel.
#[tokio::test(start_paused = true)]
async fn stopping_twice_and_before_the_start_is_over_is_no_trouble() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    cluster.fail_lists(true);
    let board = StatusBoard::new();
    let root = agent(&cluster, &control_plane, &board)
        .start(servers())
        .await
        .expect("starts");
    let (first, second) = tokio::join!(root.stop(), root.stop());
    assert_eq!((first, second), (Exit::Stopped, Exit::Stopped));
    assert_eq!(root.stop().await, Exit::Stopped);
}

/// The first lists fail for as long as the API server is away; the process stays (D22b).
#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_listed_is_tried_again_for_ever_and_costs_no_budget() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    cluster.fail_lists(true);
    control_plane.push(wants(1, input("ns", "d1")));
    let board = StatusBoard::new();
    let root = agent(&cluster, &control_plane, &board)
        .start(servers())
        .await
        .expect("starts");
    crate::testing::pass(Duration::from_secs(1200)).await;
    let controller = board.get("root/deployments").expect("declared");
    assert!(
        !matches!(controller.activity, Activity::Parked { .. }),
        "{controller:?}"
    );
    assert!(control_plane.cursors().is_empty() && control_plane.reports().is_empty());
    assert_eq!(cluster.writes(), 0);
    cluster.fail_lists(false);
    until("applied", || cluster.workload("ns", "d1").is_some()).await;
    assert_eq!(root.stop().await, Exit::Stopped);
}

/// Nobody has seen the cluster yet: that its API does not answer is told all the same, and once.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_from_the_start_is_told_like_any_outage() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    let board = StatusBoard::new();
    cluster.fail_lists(true);
    let agent = agent(&cluster, &control_plane, &board);
    let stores = agent.stores();
    let root = agent.start(servers()).await.unwrap();
    crate::testing::pass(Duration::from_secs(40)).await;
    for store in &stores {
        let watched = store.controller().watches(store.rules()).len();
        let broken = store.inside(|memory| memory.broken_watches.clone());
        assert_eq!(broken.len(), watched, "{broken:?}");
        let first = broken.values().map(|watch| watch.since).max();
        assert!(first < Some(Duration::from_secs(2)), "{broken:?}");
    }
    let told = || -> Vec<&'static str> {
        let events = board.events().newest_first().into_iter();
        let names = events.map(|event| event.what.name());
        names
            .filter(|name| name.starts_with("api_server_"))
            .collect()
    };
    assert_eq!(told(), ["api_server_lost"]);
    cluster.fail_lists(false);
    until("it is over", || {
        told() == ["api_server_recovered", "api_server_lost"]
    })
    .await;
    for store in &stores {
        store.inside(|memory| assert!(*memory.is_listed && memory.broken_watches.is_empty()));
    }
    root.stop().await;
}

/// An agent that has applied the state of one workload, `ns/d1`.
struct Applied {
    cluster: FakeCluster,
    control_plane: FakeControlPlane,
    board: StatusBoard,
    stores: Vec<Arc<Store>>,
    root: RootHandle,
}

async fn applied() -> Applied {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    control_plane.push(wants(1, input("ns", "d1")));
    let board = StatusBoard::new();
    let agent = agent(&cluster, &control_plane, &board);
    let stores = agent.stores();
    let root = agent.start(servers()).await.expect("starts");
    until("applied", || cluster.workload("ns", "d1").is_some()).await;
    Applied {
        cluster,
        control_plane,
        board,
        stores,
        root,
    }
}

/// What a panic left half changed must not be believed: the controller starts over, and the others never notice.
#[tokio::test(start_paused = true)]
async fn a_controller_whose_store_broke_in_an_operation_starts_over_from_version_zero() {
    let Applied {
        cluster,
        control_plane,
        board,
        stores,
        root,
    } = applied().await;
    let others = |board: &StatusBoard| {
        let all = board.all().into_iter();
        all.filter(|(path, _)| !path.starts_with("root/deployments"))
            .map(|(path, cell)| (path, cell.read().restarts))
            .collect::<Vec<_>>()
    };
    let before = others(&board);

    let opened = control_plane.cursors().len();
    let half_done = std::panic::AssertUnwindSafe(|| {
        stores[0].inside(|memory| {
            *memory.outbox = krane_domain::outbox::Outbox::default();
            *memory.view = krane_domain::view::View::new(Controller::Deployments);
            panic!("half way");
        })
    });
    assert!(std::panic::catch_unwind(half_done).is_err());
    assert!(stores[0].is_broken() && stores[0].is_halted());
    control_plane.push(wants(2, input("ns", "d2")));
    crate::testing::pass(Duration::from_secs(5)).await;
    assert!(cluster.workload("ns", "d2").is_none(), "nothing is written");

    // No actor died of it: it may have been a lane or a page.
    until("whole again", || !stores[0].is_broken()).await;
    until("back", || control_plane.cursors().len() > opened).await;
    assert_eq!(
        control_plane.cursors().last(),
        Some(&0),
        "with an empty store"
    );
    until("caught up", || cluster.workload("ns", "d2").is_some()).await;
    assert_eq!(others(&board), before, "no other actor was restarted");
    assert_eq!(root.stop().await, Exit::Stopped);
}

/// slawlor/ractor#282 (B49): a loop that keeps failing is parked, and its siblings never notice.
#[tokio::test(start_paused = true)]
async fn a_controller_that_keeps_failing_is_parked_and_comes_back_from_version_zero() {
    let Applied {
        cluster: _,
        control_plane,
        board,
        stores,
        root,
    } = applied().await;
    let heartbeats = board.get("root/heartbeat").expect("declared").restarts;
    let path: Arc<str> = "root/deployments/intake/stream".into();
    let is_parked = || {
        let controller = board.get("root/deployments").expect("declared");
        matches!(controller.activity, Activity::Parked { .. })
    };
    for _ in 0..100_000 {
        if is_parked() {
            break;
        }
        if let Some(actor) = board.cell(&path, None).occupant() {
            actor.kill();
        }
        crate::testing::pass(Duration::from_millis(50)).await;
    }
    assert!(is_parked(), "parked in the end");
    assert_eq!(
        board.get("root/heartbeat").expect("declared").restarts,
        heartbeats
    );
    let opened = control_plane.cursors().len();
    until("back", || control_plane.cursors().len() > opened).await;
    assert_eq!(
        control_plane.cursors().last(),
        Some(&0),
        "with an empty store"
    );
    until("caught up", || {
        stores[0].inside(|memory| memory.backlog.cursor() == 1)
    })
    .await;
    assert_eq!(root.stop().await, Exit::Stopped);
}

/// D26a: the heartbeat's success closes the breaker of every controller.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_is_taken_ends_the_waiting_of_every_controller() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    control_plane.push(wants(1, input("ns", "d1")));
    let board = StatusBoard::new();
    let agent = agent(&cluster, &control_plane, &board);
    let stores = agent.stores();
    let root = agent.start(servers()).await.expect("starts");
    until("reported", || control_plane.last_report("d1").is_some()).await;
    // The probe is out, and nobody ever hears of it again.
    stores[0].inside(|memory| {
        for _ in 0..5 {
            memory.breaker.transport_failure(board.now(), 0.5);
        }
        assert!(memory.breaker.allow(board.now() + Duration::from_secs(5)));
    });
    let told = control_plane.reports().len();
    cluster.set_pod("ns", "d1", "p1", true);
    let began = board.now();
    until("reported again", || control_plane.reports().len() > told).await;
    assert!(board.now().saturating_sub(began) <= Duration::from_secs(31));
    assert_eq!(root.stop().await, Exit::Stopped);
}

/// unkeyed/unkey e891de1317, PR #5683 (A61): 24,000 series, most of them always zero.
#[tokio::test(start_paused = true)]
async fn series_do_not_grow_with_what_runs() {
    const WORKLOADS: u64 = 2_000;
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    let (board, registry) = (StatusBoard::new(), Registry::new());
    let no_lease = (Leadership::default(), None);
    let agent = agent_counted(
        &cluster,
        &control_plane,
        &board,
        no_lease.0,
        no_lease.1,
        &registry,
    );
    let stores = agent.stores();
    let scraped = || -> String {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather());
        text.expect("encodes")
    };
    let series = || -> BTreeSet<String> {
        let text = scraped();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
        names.collect()
    };
    let root = agent.start(servers()).await.expect("starts");
    until("everything runs", || {
        let all = board.all();
        all.iter().all(|(_, cell)| cell.occupant().is_some())
    })
    .await;
    let before = series();
    for version in 1..=WORKLOADS {
        control_plane.push(wants(version, input("ns", &format!("d{version}"))));
    }
    until("applied", || {
        stores[0].inside(|memory| memory.backlog.cursor() == WORKLOADS)
    })
    .await;
    for pod in 0..WORKLOADS {
        let workload = format!("d{}", 1 + pod);
        cluster.set_pod("ns", &workload, &format!("p{pod}"), true);
        if pod % 4 == 0 {
            cluster.remove_pod(&format!("p{pod}"));
            cluster.set_pod("ns", &workload, &format!("q{pod}"), true);
        }
    }
    for version in 1..=200 {
        let newer = wants(WORKLOADS + version, input("ns", &format!("d{version}")));
        control_plane.push(newer);
    }
    until("reported", || {
        stores[0].inside(|memory| {
            memory.view.len().1 == 2_000
                && memory.backlog.cursor() == WORKLOADS + 200
                && memory.outbox.undelivered() == 0
        })
    })
    .await;
    assert_eq!(
        series(),
        before,
        "all of them were there before anything ran"
    );
    let ours = ["krane_", "controller_runtime_", "workqueue_"];
    let is_ours = |name: &String| ours.iter().any(|prefix| name.starts_with(prefix));
    assert!(before.iter().all(is_ours), "{before:?}");
    assert!(before.len() < 2_000, "{}", before.len());
    let text = scraped();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().unwrap_or_default();
        let help = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("# HELP {name} ")));
        assert!(help.is_some_and(|help| help.ends_with('.')), "{name}");
    }
    assert_eq!(root.stop().await, Exit::Stopped);
}
