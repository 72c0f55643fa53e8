//! A tree of one worker.

use std::time::Duration;

use krane_supervision::actor::{Behaviour, ShellArguments};
use krane_supervision::address::Address;
use krane_supervision::meter::Meter;
use krane_supervision::restart::Backoff;
use krane_supervision::supervisor::{
    ChildSpec, OnExhausted, Restart, Shutdown, Strategy, SupervisorSpec, Surroundings,
    start_topmost, worker,
};
use ractor::ActorCell;

use crate::status::StatusBoard;

/// Starts one worker, called `root/ID`, under a supervisor that restarts it however often it ends.
pub(crate) async fn alone<B: Behaviour<Board = StatusBoard>>(
    id: &'static str,
    board: &StatusBoard,
    shutdown: Shutdown,
    behaviour: impl Fn() -> B + Send + Sync + 'static,
) -> ActorCell {
    let path = format!("root/{id}");
    let address = Address::vacant(&*path, 8);
    let on = board.clone();
    let child = ChildSpec {
        id,
        path: path.into(),
        restart: Restart::Permanent,
        start: worker(move || ShellArguments {
            behaviour: behaviour(),
            address: address.clone(),
            board: on.clone(),
            meter: Meter::default(),
        }),
        start_timeout: Some(Duration::from_secs(5)),
        shutdown,
        backoff: Backoff::RESTART,
        reset: None,
    };
    let spec = SupervisorSpec {
        path: "root".into(),
        strategy: Strategy::OneForOne,
        intensity: 1_000,
        period: Duration::from_secs(60),
        on_exhausted: OnExhausted::Escalate,
        prepare: None,
        children: vec![child],
    };
    let surroundings = Surroundings {
        board: board.actors().clone(),
        seed: 7,
        grace: Duration::from_secs(5),
    };
    let (tree, _) = start_topmost(spec, surroundings, None)
        .await
        .expect("starts");
    tree
}
