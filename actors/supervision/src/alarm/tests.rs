//! An actor with one long wait and many short ones.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::Alarm;
use crate::actor::{Behaviour, Context, Shell, ShellArguments};
use crate::address::{Address, Own};
use crate::cause::ActorError;
use crate::message::Message;
use crate::meter::Meter;
use crate::status::Board;

const LONG: Duration = Duration::from_secs(3600);

#[derive(Debug)]
enum Tick {
    SetIn(Duration),
    Ring,
}

impl Message for Tick {
    fn name(&self) -> &'static str {
        match self {
            Self::SetIn(_) => "set_in",
            Self::Ring => "ring",
        }
    }
}

#[derive(Clone, Default)]
struct Notes {
    rings: Arc<Mutex<usize>>,
    own: Arc<Mutex<Option<Own<Tick>>>>,
}

struct Sleeper {
    alarm: Alarm,
    notes: Notes,
}

impl Behaviour for Sleeper {
    type Message = Tick;
    type Board = Board;

    async fn started(&mut self, context: &Context<Tick>) -> Result<(), ActorError> {
        *self.notes.own.lock() = Some(context.own.clone());
        Ok(())
    }

    async fn handle(&mut self, message: Tick, context: &Context<Tick>) -> Result<(), ActorError> {
        let now = context.board.now();
        match message {
            Tick::SetIn(delay) => self.alarm.set(now + delay, context, Tick::Ring),
            Tick::Ring => {
                *self.notes.rings.lock() += 1;
                self.alarm.rang();
            }
        }
        self.alarm.set(now + LONG, context, Tick::Ring);
        Ok(())
    }
}

struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

async fn sleeper(notes: Notes) -> (Address<Tick>, ActorRef<()>) {
    let (parent, _) = Actor::spawn(None, Parent, ()).await.expect("starts");
    let address = Address::vacant("root/sleeper", 8);
    let arguments = ShellArguments {
        behaviour: Sleeper {
            alarm: Alarm::default(),
            notes,
        },
        address: address.clone(),
        board: Board::new(),
        meter: Meter::default(),
    };
    let started = Shell::start(arguments, parent.get_cell()).await;
    assert!(started.is_ok());
    (address, parent)
}

/// Nothing grows with churn.
#[tokio::test(start_paused = true)]
async fn a_thousand_short_waits_beside_a_long_one_are_one_timer() {
    let notes = Notes::default();
    let (address, parent) = sleeper(notes.clone()).await;
    for _ in 0..1_000 {
        let short = Tick::SetIn(Duration::from_millis(10));
        address.send(short).await.expect("it is up");
        crate::testing::pause(Duration::from_millis(20)).await;
    }
    assert_eq!(*notes.rings.lock(), 1_000);
    let timers = notes.own.lock().as_ref().map(Own::timers);
    assert_eq!(timers, Some(1), "the long one");
    parent.kill();
}

/// The moment may have passed between the look at what is due and the setting of the alarm.
#[tokio::test(start_paused = true)]
async fn a_moment_that_has_passed_rings_at_once() {
    let notes = Notes::default();
    let (address, parent) = sleeper(notes.clone()).await;
    address.send(Tick::SetIn(Duration::ZERO)).await.expect("up");
    crate::testing::pause(Duration::from_millis(1)).await;
    assert_eq!(*notes.rings.lock(), 1);
    parent.kill();
}
