//! An actor that comes to work between its first look and the start of the task that wakes it.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::lease::{Elector, Record, Timing};
use krane_supervision::actor::Behaviour;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use krane_supervision::supervisor::Shutdown;
use parking_lot::Mutex;

use super::{Duty, Turn};
use crate::lease::Leadership;
use crate::status::{Context, StatusBoard};
use crate::testing::{alone, pass};

const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

#[derive(Debug)]
struct Turned;

impl Message for Turned {
    fn name(&self) -> &'static str {
        "turned"
    }
}

/// Looks at its start, and then only when it is told to.
struct Worker {
    leadership: Leadership,
    duty: Duty,
    turns: Arc<Mutex<Vec<Turn>>>,
}

impl Behaviour for Worker {
    type Message = Turned;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<Turned>) -> Result<(), ActorError> {
        self.duty.follow(context, || Turned);
        let now = context.board.now();
        assert_eq!(self.duty.turn(now), None);
        // The lease actor, on another thread: no task of this one has run since the look.
        self.leadership
            .publish(&elected(&self.leadership.identity(), now), now);
        Ok(())
    }

    async fn handle(&mut self, _: Turned, context: &Context<Turned>) -> Result<(), ActorError> {
        self.turns
            .lock()
            .extend(self.duty.turn(context.board.now()));
        Ok(())
    }
}

/// An elector that holds the lease.
fn elected(identity: &str, now: Duration) -> Elector {
    let mut elector = Elector::new(identity.into(), TIMING);
    elector.read(None, now);
    let record = Record {
        uid: "lease".into(),
        version: "1".into(),
        holder: Some(identity.into()),
        duration: Some(TIMING.duration),
        acquired_at: Some(1),
        transitions: 0,
    };
    elector.wrote(record, now, now);
    elector
}

#[tokio::test(start_paused = true)]
async fn an_actor_hears_of_a_lease_that_was_won_while_it_started() {
    let board = StatusBoard::new();
    let leadership = Leadership::elected("first".into(), board.clone());
    let turns = Arc::<Mutex<Vec<Turn>>>::default();
    let seen = Arc::clone(&turns);
    let shutdown = Shutdown::Stop(Duration::from_secs(1));
    let tree = alone("worker", &board, shutdown, move || Worker {
        leadership: leadership.clone(),
        duty: Duty::new(leadership.clone()),
        turns: Arc::clone(&seen),
    })
    .await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(*turns.lock(), [Turn::On(1)]);
    tree.stop(None);
    tree.wait(None).await.expect("ends");
}
