//! What becomes of messages and timers when an actor dies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::actor::{Behaviour, Context, ShellArguments};
use crate::address::{Address, SendError};
use crate::cause::ActorError;
use crate::message::Message;
use crate::meter::Meter;
use crate::status::Board;
use crate::supervisor::{ChildSpec, worker};
use crate::testing::{LIMIT, Rig, Tell, parking, pause, until};

#[tokio::test(start_paused = true)]
async fn an_address_is_down_between_incarnations_and_leads_to_the_next() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    let address = rig.address("root/a");
    assert_eq!(
        address.try_send(Tell::Work),
        Err(SendError::Down),
        "nobody lives there yet"
    );
    until("up", || rig.is_up("root/a")).await;
    rig.tell("root/a", Tell::Fail);
    until("down", || !rig.is_up("root/a")).await;
    assert_eq!(address.try_send(Tell::Work), Err(SendError::Down));
    assert_eq!(address.send(Tell::Work).await, Err(SendError::Down));
    assert!(!address.is_occupied());
    assert_eq!(address.gate().depth(), 0, "refused messages leave no trace");
    until("up", || rig.is_up("root/a")).await;
    assert_eq!(address.try_send(Tell::Work), Ok(()));
    until("worked", || rig.count("work a") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_dying_mailbox_gives_all_its_places_back() {
    let kills: [fn(&Rig); 3] = [
        |rig| assert!(rig.board.kill("root/a")),
        |rig| rig.tell("root/a", Tell::Fail),
        // Until the watchdog comes.
        |rig| rig.tell("root/a", Tell::Hang),
    ];
    for kill in kills {
        let rig = Rig::new();
        let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
        until("up", || rig.is_up("root/a")).await;
        let address = rig.address("root/a");
        kill(&rig);
        while address.try_send(Tell::Work).is_ok() {}
        if let Err(SendError::Full) = address.try_send(Tell::Work) {
            assert_eq!(address.gate().depth(), address.gate().capacity());
            // One waits for a place, and is told when there is nobody to take it.
            let waits = tokio::time::timeout(LIMIT * 2, address.send(Tell::Work)).await;
            assert_eq!(waits, Ok(Err(SendError::Down)));
        }
        until("up again", || {
            rig.status("root/a").restarts == 1 && rig.is_up("root/a")
        })
        .await;
        assert_eq!(address.gate().depth(), 0);
        assert_eq!(address.try_send(Tell::Work), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn how_long_messages_wait_and_take_is_published() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    let second = Duration::from_secs(1);
    rig.tell("root/a", Tell::Slow(3 * second));
    rig.tell("root/a", Tell::Work);
    until("worked", || rig.count("work a") == 1).await;
    until("idle", || rig.address("root/a").gate().depth() == 0).await;
    let cell = rig.board.find("root/a").expect("published");
    let timing = cell.timing();
    assert!(timing.last_wait >= 3 * second, "{timing:?}");
    assert!(timing.last_handle < second, "{timing:?}");
    assert!(timing.mean_handle >= second, "{timing:?}");
    assert_eq!(cell.gate().expect("a worker").high_water(), 2);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_incarnation_that_set_them() {
    let rig = Rig::new();
    rig.script("root/a", |script| {
        script.ticks_after = Some(Duration::from_secs(10));
    });
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    pause(Duration::from_secs(5)).await;
    assert!(rig.board.kill("root/a"));
    until("up again", || {
        rig.status("root/a").restarts == 1 && rig.is_up("root/a")
    })
    .await;
    pause(Duration::from_secs(9)).await;
    assert_eq!(
        rig.count("tick a"),
        0,
        "the first one's tick would have come by now"
    );
    pause(Duration::from_secs(2)).await;
    assert_eq!(rig.count("tick a"), 1);
}

/// Takes in keys, and panics at its third message. What is to be done is in a store above it.
struct Taker {
    store: Arc<Mutex<BTreeSet<u32>>>,
    done: Arc<Mutex<BTreeSet<u32>>>,
    messages: Arc<Mutex<u32>>,
    looks_first: bool,
}

#[derive(Debug)]
enum Take {
    Key(u32),
    Everything,
}

impl Message for Take {
    fn name(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::Everything => "everything",
        }
    }
}

impl Behaviour for Taker {
    type Message = Take;
    type Board = Board;

    async fn started(&mut self, context: &Context<Take>) -> Result<(), ActorError> {
        if self.looks_first {
            context.own.tell(Take::Everything);
        }
        Ok(())
    }

    async fn handle(&mut self, message: Take, _: &Context<Take>) -> Result<(), ActorError> {
        let keys = match message {
            Take::Key(key) => {
                *self.messages.lock() += 1;
                assert_ne!(*self.messages.lock(), 3, "the third message");
                vec![key]
            }
            Take::Everything => self.store.lock().iter().copied().collect(),
        };
        self.done.lock().extend(keys);
        Ok(())
    }
}

/// Sends twenty keys in quick succession; says how many are done in the end.
async fn twenty_keys(looks_first: bool) -> usize {
    let rig = Rig::new();
    let store: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
    let done: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
    let messages = Arc::default();
    let address = Address::vacant("root/taker", 64);
    let (board, keys, own, all) = (
        rig.board.clone(),
        Arc::clone(&store),
        address.clone(),
        Arc::clone(&done),
    );
    let start = worker(move || ShellArguments {
        behaviour: Taker {
            store: Arc::clone(&keys),
            done: Arc::clone(&all),
            messages: Arc::clone(&messages),
            looks_first,
        },
        address: own.clone(),
        board: board.clone(),
        meter: Meter::default(),
    });
    let _top = rig
        .start(parking(vec![ChildSpec {
            start,
            ..rig.leaf("root/taker")
        }]))
        .await;
    until("up", || rig.is_up("root/taker")).await;
    for key in 0..20 {
        store.lock().insert(key);
        assert_eq!(address.try_send(Take::Key(key)), Ok(()));
    }
    until("again", || {
        rig.status("root/taker").restarts == 1 && rig.is_up("root/taker")
    })
    .await;
    until("idle", || address.gate().depth() == 0).await;
    done.lock().len()
}

/// tqwewe/kameo#335 (B50): what waits in a mailbox goes with its actor.
#[tokio::test(start_paused = true)]
async fn a_lost_mailbox_loses_nothing_that_a_store_above_it_holds() {
    assert_eq!(
        twenty_keys(false).await,
        2,
        "eighteen messages die with the mailbox"
    );
    assert_eq!(
        twenty_keys(true).await,
        20,
        "whoever starts looks at the store first"
    );
}
