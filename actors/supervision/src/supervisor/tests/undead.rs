//! An actor whose thread is lost cannot be killed, and nothing can be started in its place.
//!
//! These run in real time: a thread that does not come back is nothing a paused clock can show.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;

use crate::actor::{Behaviour, Context, ShellArguments};
use crate::address::Address;
use crate::cause::{ActorError, Cause};
use crate::message::Message;

use crate::meter::Meter;
use crate::status::{Activity, Board, Facts};
use crate::supervisor::{ChildSpec, Strategy, SupervisorSpec, worker};
use crate::testing::{Rig, escalating, parking, until};

struct Stuck(Arc<Mutex<Receiver<()>>>);

#[derive(Debug)]
struct Block;

impl Message for Block {
    fn name(&self) -> &'static str {
        "block"
    }
}

impl Behaviour for Stuck {
    type Message = Block;
    type Board = Board;

    async fn started(&mut self, _: &Context<Block>) -> Result<(), ActorError> {
        Ok(())
    }

    async fn handle(&mut self, Block: Block, _: &Context<Block>) -> Result<(), ActorError> {
        // Blocks the thread until the test lets go.
        self.0.lock().recv().ok();
        Ok(())
    }
}

struct Setting {
    rig: Rig,
    spec: SupervisorSpec,
    address: Address<Block>,
    /// Dropping it lets go of the thread.
    release: SyncSender<()>,
}

fn setting() -> Setting {
    let mut rig = Rig::new();
    rig.surroundings.grace = Duration::from_millis(200);
    let (release, blocked) = sync_channel(1);
    let blocked = Arc::new(Mutex::new(blocked));
    let address = Address::vacant("root/g/stuck", 1);
    let (board, own) = (rig.board.clone(), address.clone());
    let start = worker(move || ShellArguments {
        behaviour: Stuck(Arc::clone(&blocked)),
        address: own.clone(),
        board: board.clone(),
        meter: Meter::default(),
    });
    let limit = Duration::from_millis(100);
    let facts = Facts {
        group: None,
        handler_limit: Some(limit),
    };
    rig.board.declare(&"root/g/stuck".into(), facts);
    let child = ChildSpec {
        start,
        ..rig.leaf("root/g/stuck")
    };
    let group = escalating(
        "root/g",
        Strategy::RestForOne,
        5,
        vec![rig.leaf("root/g/a"), child],
    );
    let spec = parking(vec![rig.nest(group, "g"), rig.leaf("root/z")]);
    Setting {
        rig,
        spec,
        address,
        release,
    }
}

async fn stuck() -> (Setting, crate::testing::Top) {
    let setting = setting();
    let rounds = Duration::from_millis(20);
    let top = setting
        .rig
        .start_with_rounds(setting.spec.clone(), rounds)
        .await;
    until("up", || {
        setting.rig.is_up("root") && setting.rig.is_up("root/g")
    })
    .await;
    setting.address.try_send(Block).expect("it is up");
    // Killed before it blocks it would simply die.
    until("blocked", || {
        let activity = setting.rig.status("root/g/stuck").activity.clone();
        matches!(
            activity,
            Activity::Handling {
                message: "block",
                ..
            }
        )
    })
    .await;
    (setting, top)
}

/// How the tree ended; a minute is more than it ever needs.
async fn end_of(top: &mut crate::testing::Top) -> crate::supervisor::End {
    let ended = top.ended.wait_for(Option::is_some);
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    ended.expect("the tree ends").expect("it says why").clone()
}

fn is_undead(end: &Result<(), Cause>) -> bool {
    *end == Err(Cause::Undead("root/g/stuck".into()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_that_cannot_be_killed_ends_the_tree() {
    let (setting, mut top) = stuck().await;
    let end = end_of(&mut top).await;
    assert!(end.as_ref().is_some_and(is_undead), "{end:?}");
    assert_eq!(setting.rig.status("root/g/stuck").hangs, 1);
    assert_eq!(
        setting.rig.count("stop z"),
        1,
        "the others are stopped in order"
    );
    drop(setting.release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sibling_that_cannot_be_stopped_ends_the_tree() {
    let (setting, mut top) = stuck().await;
    // Its earlier sibling fails, so it has to go first; and cannot.
    assert!(setting.rig.board.kill("root/g/a"));
    let end = end_of(&mut top).await;
    assert!(end.as_ref().is_some_and(is_undead), "{end:?}");
    drop(setting.release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_supervisor_leaves_undead_ends_the_tree() {
    let (setting, mut top) = stuck().await;
    assert!(setting.rig.board.kill("root/g"));
    let end = end_of(&mut top).await;
    assert!(end.as_ref().is_some_and(is_undead), "{end:?}");
    drop(setting.release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordered_stop_says_what_it_left_behind() {
    let (setting, mut top) = stuck().await;
    top.actor.stop(None);
    let end = end_of(&mut top).await;
    assert!(end.as_ref().is_some_and(is_undead), "{end:?}");
    drop(setting.release);
}
