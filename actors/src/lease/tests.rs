//! Lease actors of several processes on one Lease, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::lease::Timing;
use krane_ports::WriteAccess as _;
use krane_supervision::supervisor::Shutdown;
use ractor::ActorCell;
use tokio::time::Instant;

use super::{Election, Leadership, Lease, Role};
use crate::chance::Chance;
use crate::status::StatusBoard;
use crate::testing::{FakeLease, LeaseFault, alone, pass};

const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

/// One process with nothing but its lease actor.
struct Process {
    leadership: Leadership,
    board: StatusBoard,
    tree: ActorCell,
}

impl Process {
    async fn start(lease: &FakeLease, name: &'static str) -> Self {
        let board = StatusBoard::new();
        let leadership = Leadership::elected(name.into(), board.clone());
        let election = Election {
            leases: lease.way(name),
            timing: TIMING,
            chance: Chance::new(name.len() as u64),
        };
        let of_worker = leadership.clone();
        let shutdown = Shutdown::Stop(crate::tree::LEASE_PATIENCE);
        let tree = alone("lease", &board, shutdown, move || {
            Lease::new(of_worker.clone(), Some(election.clone()))
        })
        .await;
        Self {
            leadership,
            board,
            tree,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.may_write(self.board.now())
    }

    fn kill_actor(&self) -> bool {
        let cell = self.board.cell(&Arc::from("root/lease"), None);
        cell.occupant().is_some_and(|actor| {
            actor.kill();
            true
        })
    }

    async fn stop(&self) {
        self.tree.stop(None);
        self.tree.wait(None).await.expect("ends");
    }

    /// SIGKILL: nothing is given back.
    fn crash(&self) {
        self.tree.kill();
    }
}

/// Waits until something is so, and makes sure at every step that at most one leads.
async fn until(what: &str, processes: &[&Process], is_so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    for _ in 0..20_000 {
        assert!(leading(processes) <= 1, "two lead while waiting: {what}");
        if is_so() {
            return began.elapsed();
        }
        pass(Duration::from_millis(10)).await;
    }
    panic!("never so: {what}");
}

fn leading(processes: &[&Process]) -> usize {
    processes.iter().filter(|process| process.leads()).count()
}

async fn two() -> (FakeLease, Process, Process) {
    let lease = FakeLease::default();
    let first = Process::start(&lease, "first").await;
    until("the first leads", &[&first], || first.leads()).await;
    let second = Process::start(&lease, "second").await;
    pass(Duration::from_secs(30)).await;
    assert!(first.leads() && !second.leads());
    (lease, first, second)
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_keeps_leading_while_the_other_looks_on() {
    let (lease, first, second) = two().await;
    let before = (lease.requests("first"), lease.requests("second"));
    for _ in 0..600 {
        pass(Duration::from_millis(100)).await;
        assert!(first.leads() && !second.leads());
    }
    // Every 2 s, less a fifth at most.
    assert!((28..=40).contains(&(lease.requests("first") - before.0)));
    assert!((28..=40).contains(&(lease.requests("second") - before.1)));
    let shown = second.leadership.shown().expect("a lease is in use");
    assert_eq!(shown.role, Role::Standby);
    assert_eq!(shown.holder.as_deref(), Some("first"));
    let shown = first.leadership.shown().expect("a lease is in use");
    assert_eq!(shown.role, Role::Leader);
    assert!(shown.since < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_hands_over_within_three_seconds() {
    let (lease, first, second) = two().await;
    first.stop().await;
    assert_eq!(lease.holder(), None);
    let time = until("the second leads", &[&first, &second], || second.leads()).await;
    assert!(time < Duration::from_secs(3), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_hands_over_within_twenty_seconds() {
    let (_lease, first, second) = two().await;
    first.crash();
    let time = until("the second leads", &[&first, &second], || second.leads()).await;
    assert!((10..20).contains(&time.as_secs()), "{time:?}");
}

/// No answer any more, in every way there is: the right to write ends by itself, before the other
/// one gets it; and it comes back to somebody when the trouble is over.
#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_before_the_other_begins() {
    for fault in [LeaseFault::Refuse, LeaseFault::Hang] {
        let (lease, first, second) = two().await;
        lease.fault("first", Some(fault));
        let both = [&first, &second];
        let time = until("the first stops", &both, || !first.leads()).await;
        assert!(time <= Duration::from_secs(10), "{fault:?}: {time:?}");
        assert!(!second.leads(), "{fault:?}");
        until("the second leads", &both, || second.leads()).await;
        lease.fault("first", None);
        pass(Duration::from_secs(30)).await;
        assert!(second.leads() && !first.leads(), "{fault:?}");
    }
}

/// Nobody took over meanwhile: the same term goes on, and with it everything that is known.
#[tokio::test(start_paused = true)]
async fn an_outage_for_everybody_ends_in_the_same_term() {
    let (lease, first, second) = two().await;
    let term = first.leadership.term(first.board.now());
    for name in ["first", "second"] {
        lease.fault(name, Some(LeaseFault::Refuse));
    }
    pass(Duration::from_secs(60)).await;
    assert_eq!(leading(&[&first, &second]), 0);
    lease.fault("first", None);
    let both = [&first, &second];
    let time = until("the first leads", &both, || first.leads()).await;
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(first.leadership.term(first.board.now()), term);
    lease.fault("second", None);
    pass(Duration::from_secs(60)).await;
    assert!(first.leads());
}

/// Lost update: renewals take effect, and the holder never hears of it.
#[tokio::test(start_paused = true)]
async fn lost_answers_cost_the_holder_its_right_and_grant_nobody_another_one() {
    let (lease, first, second) = two().await;
    lease.fault("first", Some(LeaseFault::LoseAnswers));
    let both = [&first, &second];
    until("the first stops", &both, || !first.leads()).await;
    for _ in 0..600 {
        pass(Duration::from_millis(100)).await;
        assert_eq!(leading(&both), 0, "it is renewed, and nobody may know");
    }
    lease.fault("first", None);
    until("the first leads", &both, || first.leads()).await;
}

#[tokio::test(start_paused = true)]
async fn answers_that_take_long_count_from_the_moment_of_sending() {
    let (lease, first, second) = two().await;
    let time = Duration::from_millis(2_400);
    lease.fault("first", Some(LeaseFault::Slow(time)));
    for _ in 0..600 {
        pass(Duration::from_millis(100)).await;
        assert!(first.leads() && !second.leads());
    }
    // Over the limit of a request: as good as none.
    lease.fault("first", Some(LeaseFault::Slow(time * 2)));
    let both = [&first, &second];
    until("the first stops", &both, || !first.leads()).await;
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_edit_is_a_conflict_that_costs_one_more_look() {
    let (lease, first, second) = two().await;
    for _ in 0..30 {
        lease.touch();
        pass(Duration::from_millis(900)).await;
        assert!(first.leads() && !second.leads());
    }
}

/// Its right lives above it: a restart loses nothing, and being dead ends it in time.
#[tokio::test(start_paused = true)]
async fn a_lease_actor_that_is_killed_goes_on_and_one_that_stays_dead_stops_the_writing() {
    let (_lease, first, second) = two().await;
    let both = [&first, &second];
    let term = first.leadership.term(first.board.now());
    for _ in 0..5 {
        assert!(first.kill_actor());
        for _ in 0..80 {
            pass(Duration::from_millis(100)).await;
            assert_eq!(first.leadership.term(first.board.now()), term);
        }
    }
    first.crash();
    let time = until("the first stops", &both, || !first.leads()).await;
    assert!(time <= Duration::from_secs(10), "{time:?}");
    until("the second leads", &both, || second.leads()).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_turn_wakes_at_once_and_when_the_right_runs_out_by_itself() {
    let (lease, first, _second) = two().await;
    let term = first.leadership.term(first.board.now());
    assert!(term.is_some());
    let wait = tokio::time::timeout(Duration::from_secs(60), first.leadership.turned(term));
    assert!(wait.await.is_err(), "renewals are no turn");
    lease.fault("first", Some(LeaseFault::Hang));
    let began = Instant::now();
    first.leadership.turned(term).await;
    assert!(!first.leads() && began.elapsed() <= Duration::from_secs(10));
}

/// What was sent and not answered may still take effect: then nobody is invited to take over.
#[tokio::test(start_paused = true)]
async fn a_lease_is_not_given_back_while_a_write_may_still_take_effect() {
    for is_answered in [true, false] {
        let (lease, first, second) = two().await;
        let write = first.leadership.permit().expect("it leads");
        assert!(second.leadership.permit().is_none());
        if is_answered {
            write.answered();
        } else {
            drop(write);
        }
        first.stop().await;
        assert!(!first.leads() && first.leadership.permit().is_none());
        assert_eq!(lease.holder().is_none(), is_answered);
        until("the second leads", &[&second], || second.leads()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_everybody_may_write_always_and_nothing_ever_turns() {
    let leadership = Leadership::default();
    assert!(leadership.may_write(Duration::ZERO) && leadership.permit().is_some());
    assert_eq!(leadership.shown(), None);
    let term = leadership.term(Duration::ZERO);
    let turn = tokio::time::timeout(Duration::from_secs(999), leadership.turned(term));
    assert!(turn.await.is_err());
}

/// The backup names a process that has stood by since then. The one that leads may not know yet (F3).
#[tokio::test(start_paused = true)]
async fn a_lease_restored_from_a_backup_never_makes_two_lead() {
    let (lease, first, second) = two().await;
    let both = [&first, &second];
    let backup = lease.backup();
    lease.fault("first", Some(LeaseFault::Refuse));
    until("the second leads", &both, || second.leads()).await;
    lease.fault("first", None);
    pass(Duration::from_secs(30)).await;
    assert!(second.leads());
    // The one that leads hears of it last.
    lease.fault("second", Some(LeaseFault::Refuse));
    lease.restore(backup);
    until("the first leads again", &both, || first.leads()).await;
    lease.fault("second", None);
    until("the second stands by", &both, || !second.leads()).await;
    first.stop().await;
    second.stop().await;
}

/// A version that is known may be another record's by now (F3).
#[tokio::test(start_paused = true)]
async fn once_the_cluster_was_restored_the_lease_is_read_before_it_is_written() {
    let lease = FakeLease::default();
    let process = Process::start(&lease, "first").await;
    until("it leads", &[&process], || process.leads()).await;
    let mut taken = lease.backup().expect("there is a Lease");
    taken.holder = Some("other".into());
    taken.transitions += 1;
    lease.restore(Some(taken));
    assert!(process.board.api_server().note_restored(0));
    until("it stands by", &[&process], || !process.leads()).await;
    assert_eq!(lease.holder().as_deref(), Some("other"));
    process.stop().await;
}
