use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use krane_ports::Server;
use krane_supervision::actor::ShellArguments;
use krane_supervision::address::Address;
use krane_supervision::meter::Meter;
use krane_supervision::supervisor::{ChildSpec, worker};
use krane_supervision::testing::{Rig, Top, parking, pause, until};
use tokio_util::sync::CancellationToken;

use super::ServerActor;
use crate::status::StatusBoard;

/// How serving ends.
#[derive(Clone, Copy)]
enum Way {
    WhenStopped,
    LongAfterStopped,
    Fails,
    Panics,
    Ends,
}

struct Scripted {
    ways: &'static [Way],
    served: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
}

#[async_trait]
impl Server for Scripted {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        let at = self
            .served
            .fetch_add(1, Ordering::Relaxed)
            .min(self.ways.len() - 1);
        match self.ways[at] {
            Way::WhenStopped => stop.cancelled().await,
            Way::LongAfterStopped => {
                stop.cancelled().await;
                pause(Duration::from_hours(1)).await;
            }
            Way::Fails => return Err("the port is gone".to_owned()),
            Way::Panics => panic!("canary-3f"),
            Way::Ends => return Ok(()),
        }
        self.stopped.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

struct Setting {
    rig: Rig,
    top: Top,
    served: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
}

async fn serving(ways: &'static [Way]) -> Setting {
    let board = StatusBoard::new();
    let rig = Rig::on(board.actors().clone(), 1);
    let (started, stopped) = (Arc::default(), Arc::default());
    let server = Arc::new(Scripted {
        ways,
        served: Arc::clone(&started),
        stopped: Arc::clone(&stopped),
    });
    let address = Address::vacant("root/rpc", 8);
    let start = worker(move || ShellArguments {
        behaviour: ServerActor::new(server.clone()),
        address: address.clone(),
        board: board.clone(),
        meter: Meter::default(),
    });
    let top = rig
        .start(parking(vec![ChildSpec {
            start,
            ..rig.leaf("root/rpc")
        }]))
        .await;
    Setting {
        rig,
        top,
        served: started,
        stopped,
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_in_any_way_serves_again() {
    let expected = [
        (&[Way::Fails, Way::WhenStopped], "the port is gone"),
        (&[Way::Panics, Way::WhenStopped], "it panicked"),
        (&[Way::Ends, Way::WhenStopped], "it ended by itself"),
    ];
    for (ways, words) in expected {
        let setting = serving(ways).await;
        until("serves again", || {
            setting.served.load(Ordering::Relaxed) == 2
        })
        .await;
        let status = setting.rig.status("root/rpc");
        let failure = status.last_failure.as_ref().expect("published");
        assert_eq!(failure.kind, "error");
        // The place of a panic follows, when a hook notes it.
        assert!(failure.text.starts_with(words), "{}", failure.text);
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_the_server_finish() {
    let mut setting = serving(&[Way::WhenStopped]).await;
    until("serves", || setting.served.load(Ordering::Relaxed) == 1).await;
    assert_eq!(setting.top.stop().await, Ok(()));
    assert_eq!(setting.stopped.load(Ordering::Relaxed), 1);
}

/// unkeyed/unkey f97dba546d, 5d4bd77c30 (A65): what refuses to stop holds up nobody.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_finish_in_time_is_cut_off() {
    let mut setting = serving(&[Way::LongAfterStopped]).await;
    until("serves", || setting.served.load(Ordering::Relaxed) == 1).await;
    let began = setting.rig.board.now();
    assert_eq!(setting.top.stop().await, Ok(()));
    assert!(setting.rig.board.now() - began < Duration::from_secs(2));
    pause(Duration::from_hours(2)).await;
    assert_eq!(
        setting.stopped.load(Ordering::Relaxed),
        0,
        "its task is gone too"
    );
}
