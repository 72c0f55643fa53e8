//! Two agents on one cluster: what the one that does not hold the lease leaves undone.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use krane_domain::lease::Timing;
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind};
use krane_ports::SchedulerDesk;
use krane_supervision::root::{Exit, RootHandle};

use super::{agent_that, servers, until};
use crate::agent::Agent;
use crate::chance::Chance;
use crate::lease::{Election, Leadership};
use crate::scheduler::Desk;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::testing::{FakeCluster, FakeControlPlane, FakeLease, LeaseFault, input, pass, wants};

const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

struct Process {
    control_plane: FakeControlPlane,
    board: StatusBoard,
    leadership: Leadership,
    store: Arc<Store>,
    desk: Desk,
    root: RootHandle,
}

/// The control planes show the same; each tells who asked it.
struct World {
    cluster: FakeCluster,
    lease: FakeLease,
    first: Process,
    second: Process,
}

impl Process {
    async fn start(cluster: &FakeCluster, lease: &FakeLease, name: &'static str) -> Self {
        let (control_plane, board) = (FakeControlPlane::default(), StatusBoard::new());
        let leadership = Leadership::elected(name.into(), board.clone());
        let election = Election {
            leases: lease.way(name),
            timing: TIMING,
            chance: Chance::new(3),
        };
        let agent: Agent = agent_that(
            cluster,
            &control_plane,
            &board,
            leadership.clone(),
            Some(election),
        );
        let store = Arc::clone(&agent.stores()[0]);
        let desk = agent.scheduler_desk();
        let root = agent.start(servers()).await.expect("starts");
        Self {
            control_plane,
            board,
            leadership,
            store,
            desk,
            root,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.is_leader(self.board.now())
    }

    fn cursor(&self) -> u64 {
        self.store.inside(|memory| memory.backlog.cursor())
    }

    /// Streams, reports, questions and heartbeats so far.
    fn said(&self) -> [usize; 4] {
        let it = &self.control_plane;
        [
            it.cursors().len(),
            it.reports().len(),
            it.questions(),
            it.heartbeats(),
        ]
    }
}

impl World {
    async fn start() -> Self {
        let (cluster, lease) = (FakeCluster::default(), FakeLease::default());
        let first = Process::start(&cluster, &lease, "first").await;
        until("the first leads", || first.leads()).await;
        let second = Process::start(&cluster, &lease, "second").await;
        let world = Self {
            cluster,
            lease,
            first,
            second,
        };
        world.want(1, "d1", "registry.example/app:1");
        until("applied", || world.first.cursor() == 1).await;
        world.cluster.set_pod("ns", "d1", "p1", true);
        until("told", || {
            world.first.control_plane.last_report("d1").is_some()
        })
        .await;
        world
    }

    fn want(&self, version: u64, name: &str, image: &str) {
        let mut input = input("ns", name);
        input.image = image.into();
        for process in [&self.first, &self.second] {
            process.control_plane.push(wants(version, input.clone()));
        }
    }

    fn fingerprint(&self, name: &str) -> u64 {
        let live = self.cluster.workload("ns", name).expect("it is there");
        live.fingerprint
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_watches_and_is_silent_for_hours() {
    let world = World::start().await;
    pass(Duration::from_secs(3 * 3600)).await;
    assert_eq!(world.second.said(), [0; 4]);
    let seen = world.second.store.inside(|memory| {
        let key = krane_domain::ids::ObjectKey::new("ns", "d1");
        (
            memory.view.workload(&key).is_some(),
            memory.to_observe.len(),
        )
    });
    assert_eq!(seen, (true, 0), "its view is warm, and nothing piles up");
    let handled = |path: &str| world.second.board.get(path).expect("declared").handled;
    for actor in ["intake/stream", "intake/replay", "intake/resync"] {
        let handled = handled(&format!("root/deployments/{actor}"));
        assert!(handled <= 1, "{actor} does not spin: {handled}");
    }
    assert!(handled("root/deployments/intake/reconciler") < 5_000);
    assert!(handled("root/deployments/observer/reporter") < 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_hands_everything_over_within_three_seconds_and_all_is_said_again() {
    let world = World::start().await;
    pass(Duration::from_secs(60)).await;
    let writes = world.cluster.writes();
    assert_eq!(world.first.root.stop().await, Exit::Stopped);
    let began = world.second.board.now();
    until("the second leads", || world.second.leads()).await;
    until("it opened its stream", || world.second.said()[0] == 1).await;
    let time = world.second.board.now() - began;
    assert!(time < Duration::from_secs(3), "{time:?}");
    assert_eq!(world.second.control_plane.cursors(), [0]);
    until("it has told", || world.second.said()[1] > 0).await;
    assert!(world.second.said()[3] > 0, "a heartbeat at once");
    pass(Duration::from_secs(60)).await;
    assert_eq!(
        world.cluster.writes(),
        writes,
        "what is in place costs nothing"
    );
    assert_eq!(world.second.root.stop().await, Exit::Stopped);
}

/// A write that was decided while the lease was held and starts after its deadline would be one
/// beside another writer's.
#[tokio::test(start_paused = true)]
async fn no_write_starts_after_the_deadline_even_in_a_lane_that_is_under_way() {
    let world = World::start().await;
    pass(Duration::from_secs(30)).await;
    world.lease.fault("first", Some(LeaseFault::Hang));
    world.lease.fault("second", Some(LeaseFault::Hang));
    let writes = world.cluster.writes();
    // A look at what has the name, and then the create.
    world.cluster.set_call_time(Duration::from_secs(12));
    world.want(2, "d2", "registry.example/app:1");
    pass(Duration::from_secs(120)).await;
    assert_eq!(world.cluster.writes(), writes);
    // Its lane ended with the term (D49); nothing is wrong with the state.
    let (in_flight, in_trouble) = world.first.store.inside(|memory| {
        let backlog = &memory.backlog;
        (backlog.in_flight(), backlog.in_trouble().count())
    });
    assert_eq!((in_flight, in_trouble), (0, 0));
    world.cluster.set_call_time(Duration::ZERO);
    world.lease.fault("first", None);
    until("the first leads again", || world.first.leads()).await;
    let began = world.first.board.now();
    until("and goes on at once", || {
        world.cluster.workload("ns", "d2").is_some()
    })
    .await;
    assert!(world.first.board.now() - began < Duration::from_secs(1));
    let cursors = world.first.control_plane.cursors();
    assert_eq!(cursors, [0, 1], "in the same term the cursor stands (D3)");
}

/// What the other one wrote meanwhile is newer than what is known here: not one old write.
#[tokio::test(start_paused = true)]
async fn who_comes_back_after_another_writer_begins_anew_and_never_undoes_its_writes() {
    let world = World::start().await;
    pass(Duration::from_secs(30)).await;
    world.lease.fault("first", Some(LeaseFault::Refuse));
    until("the second leads", || world.second.leads()).await;
    // Only the second hears of this one, until the first asks again.
    let before = world.fingerprint("d1");
    world.want(7, "d1", "registry.example/app:7");
    until("the second applied it", || world.second.cursor() == 7).await;
    let newer = world.fingerprint("d1");
    assert_ne!(newer, before);
    let told = world.first.said()[1];
    let writes = world.cluster.writes();
    world.lease.fault("first", None);
    assert_eq!(world.second.root.stop().await, Exit::Stopped);
    until("the first leads", || world.first.leads()).await;
    until("it has caught up", || world.first.cursor() == 7).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.cluster.writes(), writes, "not one write");
    assert_eq!(world.fingerprint("d1"), newer);
    assert_eq!(world.first.control_plane.cursors().last(), Some(&0));
    assert!(world.first.said()[1] > told, "everything is said again");
}

#[tokio::test(start_paused = true)]
async fn losing_the_lease_closes_the_stream_and_stops_reports_and_heartbeats() {
    let world = World::start().await;
    world.lease.fault("first", Some(LeaseFault::Hang));
    until("the first stops", || !world.first.leads()).await;
    pass(Duration::from_millis(50)).await;
    let said = world.first.said();
    let open = world.first.store.inside(|memory| memory.stream.opened_at);
    assert_eq!(open, None);
    world.cluster.set_pod("ns", "d1", "p1", false);
    world.first.control_plane.cut("unavailable");
    pass(Duration::from_secs(600)).await;
    assert_eq!(world.first.said(), said);
}

/// A standby neither takes calls nor tells anything: it would not be its own to keep true.
#[tokio::test(start_paused = true)]
async fn for_the_scheduler_a_standby_is_unavailable() {
    let world = World::start().await;
    let call = |name: &str| Call::ApplyDeployment {
        input: Box::new(input("ns", name)),
        readiness_id: None,
    };
    let unavailable = |failure: CallFailure| {
        assert_eq!(failure.kind, CallFailureKind::Unavailable, "{failure}");
        assert!(failure.message.contains("standby"), "{failure}");
    };
    let writes = world.cluster.writes();
    unavailable(world.second.desk.call(call("s1")).await.expect_err("none"));
    unavailable(world.second.desk.watch().await.map(drop).expect_err("none"));
    // Not even what is wrong with a call is said.
    unavailable(world.second.desk.call(call("")).await.expect_err("none"));
    assert_eq!(world.cluster.writes(), writes);

    assert_eq!(world.first.desk.call(call("s1")).await, Ok(()));
    let mut watching = world.first.desk.watch().await.expect("follows");
    let first = tokio::time::timeout(Duration::from_secs(1), watching.next()).await;
    assert!(first.is_ok_and(|state| state.is_some_and(|state| state.is_ok())));
    world.lease.fault("first", Some(LeaseFault::Hang));
    world.cluster.set_call_time(Duration::from_secs(60));
    // Its right runs out while the call waits.
    unavailable(world.first.desk.call(call("s2")).await.expect_err("none"));
    let mut last = None;
    while let Some(state) = watching.next().await {
        last = Some(state);
    }
    unavailable(last.expect("a last word").expect_err("the end"));
    // What the first one made is the scheduler's in the eyes of the second, too.
    world.cluster.set_call_time(Duration::ZERO);
    until("the second leads", || world.second.leads()).await;
    let gone = Call::DeleteDeployment {
        namespace: "ns".into(),
        name: "s1".into(),
    };
    until("it has caught up", || world.second.cursor() == 1).await;
    assert_eq!(world.second.desk.call(gone).await, Ok(()));
    assert!(world.cluster.workload("ns", "s1").is_none());
}

/// (F1) The API server is away for longer than the term lasts while a report hangs; the same
/// process leads again, and both the lost report and its repetition are answered.
#[tokio::test(start_paused = true)]
async fn reports_of_a_lost_term_end_with_it_and_starve_no_other_after_it() {
    let world = World::start().await;
    world.want(2, "d2", "registry.example/app:1");
    until("applied", || world.first.cursor() == 2).await;
    let control_plane = &world.first.control_plane;
    control_plane.set_report_time(Duration::from_secs(25));
    world.cluster.set_pod("ns", "d1", "p1", false);
    until("a report hangs", || control_plane.reporting() > 0).await;
    world.lease.fault("first", Some(LeaseFault::Hang));
    world.lease.fault("second", Some(LeaseFault::Hang));
    until("the term is over", || !world.first.leads()).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(control_plane.reporting(), 0, "its calls are over, too");
    world.lease.fault("first", None);
    until("the first leads again", || world.first.leads()).await;
    pass(Duration::from_secs(60)).await;
    // Quick, and not so quick that a report that is sent for ever would stop the clock.
    control_plane.set_report_time(Duration::from_millis(100));
    let said = control_plane.reports().len();
    pass(Duration::from_secs(20 * 60)).await;
    let again = control_plane.reports().len() - said;
    assert!(
        (2..=8).contains(&again),
        "both about every ten minutes: {again}"
    );
    world.cluster.set_pod("ns", "d2", "p2", true);
    let reports = || control_plane.reports().into_iter();
    let of_d2 = || reports().filter(|it| &*it.key().name == "d2").count();
    let before = of_d2();
    pass(Duration::from_secs(2)).await;
    assert_eq!(of_d2(), before + 1, "news of the other one leave at once");
}
