//! The same on several threads and in real time, where ends and starts do overlap.

use std::time::Duration;

use crate::restart::Backoff;

use crate::supervisor::Strategy;
use crate::testing::{Rig, Tell, escalating, living_below, parking, pause, until};

const LEAVES: [&str; 6] = [
    "root/a",
    "root/g/b",
    "root/g/c",
    "root/g/d",
    "root/g/n/e",
    "root/g/n/f",
];
const SUPERVISORS: [&str; 2] = ["root/g", "root/g/n"];
const FAULTS: usize = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_incarnations_ever_overlap() {
    let mut rig = Rig::new();
    rig.backoff = Backoff {
        first: Duration::from_millis(1),
        cap: Duration::from_millis(2),
        ..Backoff::RESTART
    };
    let leaves = |paths: &[&'static str]| paths.iter().map(|path| rig.leaf(path)).collect();
    let deep = escalating(
        "root/g/n",
        Strategy::OneForOne,
        FAULTS,
        leaves(&LEAVES[4..]),
    );
    let mut group: Vec<_> = leaves(&LEAVES[1..4]);
    group.push(rig.nest(deep, "n"));
    let group = escalating("root/g", Strategy::RestForOne, FAULTS, group);
    let mut spec = parking(vec![rig.leaf("root/a"), rig.nest(group, "g")]);
    spec.intensity = FAULTS;
    let mut top = rig.start(spec).await;

    let mut chance = fastrand::Rng::with_seed(1);
    let mut faults = 0;
    for _ in 0..FAULTS {
        let leaf = LEAVES[chance.usize(..LEAVES.len())];
        let is_hit = match chance.u8(..8) {
            0 => rig.board.kill(SUPERVISORS[chance.usize(..2)]),
            1..=3 => rig.board.kill(leaf),
            4 => rig.address(leaf).try_send(Tell::Leave).is_ok(),
            _ => rig.address(leaf).try_send(Tell::Fail).is_ok(),
        };
        faults += u64::from(is_hit);
        pause(Duration::from_micros(chance.u64(..3_000))).await;
    }
    assert!(faults > 100, "only {faults} hit");
    until("settled", || {
        let mut paths = LEAVES.iter().chain(&SUPERVISORS);
        paths.all(|path| rig.is_up(path)) && living_below(&top.actor) == 9
    })
    .await;
    for path in LEAVES.iter().chain(&SUPERVISORS) {
        assert!(rig.status(path).restarts <= faults, "{path}");
    }
    assert_eq!(top.stop().await, Ok(()));
    rig.assert_never_two();
    assert!(
        rig.board
            .all()
            .iter()
            .all(|(_, cell)| cell.occupant().is_none())
    );
}
