//! Plans at random.

use fastrand::Rng;

use super::{ACTORS, CallFault, EventFault, Fault, MessageFault, Plan, WORKERS, WorldFault};

/// How much goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Intensity {
    /// How long the chaos is, in milliseconds.
    pub chaos: u64,
    /// About how many calls, events and messages the run will see of each.
    pub calls: u64,
}

/// A plan that follows from the chance alone. Every run has its own mixture: some parts of the
/// world behave well, others badly.
pub fn at_random(chance: &mut Rng, intensity: Intensity) -> Plan {
    let mut faults = Vec::new();
    let rates = [0.0, 0.0, 0.01, 0.03, 0.1];
    let rate = |chance: &mut Rng| rates[chance.usize(..rates.len())];
    let (cluster, control) = (rate(chance), rate(chance));
    let (event, message) = (rate(chance), rate(chance));
    let may_crash = chance.bool();
    for number in 0..intensity.calls {
        if chance.f64() < cluster {
            faults.push(Fault::Cluster(number, call(chance, may_crash)));
        }
        if chance.f64() < control {
            faults.push(Fault::Control(number, call(chance, may_crash)));
        }
        if chance.f64() < event {
            faults.push(Fault::Event(number, watch_event(chance)));
        }
        if chance.f64() < message {
            faults.push(Fault::Message(number, stream_message(chance)));
        }
    }
    for _ in 0..chance.usize(..12) {
        let at = chance.u64(1_000..intensity.chaos);
        faults.push(Fault::World(at, world(chance)));
    }
    Plan { faults }
}

fn delay(chance: &mut Rng) -> u64 {
    let most = [50, 500, 3_000, 20_000];
    let most = most[chance.usize(..most.len())];
    chance.u64(1..most)
}

fn away(chance: &mut Rng) -> u64 {
    let most = [2_000, 20_000, 120_000];
    let most = most[chance.usize(..most.len())];
    chance.u64(500..most)
}

fn call(chance: &mut Rng, may_crash: bool) -> CallFault {
    match chance.u8(..if may_crash { 14 } else { 12 }) {
        0 | 1 => CallFault::DelayBefore(delay(chance)),
        2 => CallFault::DelayAfter(delay(chance)),
        3..=6 => CallFault::Refuse(chance.u8(..)),
        7 | 8 => CallFault::LoseAnswer,
        9 | 10 => CallFault::Hang,
        11 => CallFault::Late(chance.u64(16_000..60_000)),
        12 => CallFault::CrashBefore,
        _ => CallFault::CrashAfter,
    }
}

fn watch_event(chance: &mut Rng) -> EventFault {
    match chance.u8(..10) {
        0 | 1 => EventFault::Delay(delay(chance)),
        2 => EventFault::Repeat,
        3 | 4 => EventFault::Swap,
        5 | 6 => EventFault::Break,
        7 => EventFault::Silence,
        _ => EventFault::Gap(chance.u8(..4)),
    }
}

fn stream_message(chance: &mut Rng) -> MessageFault {
    match chance.u8(..8) {
        0 | 1 => MessageFault::Cut,
        2 => MessageFault::CutCleanly,
        3 => MessageFault::Delay(delay(chance)),
        4 | 5 => MessageFault::Repeat,
        6 => MessageFault::Swap,
        _ => MessageFault::Silence,
    }
}

fn world(chance: &mut Rng) -> WorldFault {
    let which = chance.u16(..);
    match chance.u8(..38) {
        0 | 1 => WorldFault::ControlAway(away(chance)),
        2 => WorldFault::ControlFrozen(away(chance)),
        3 => WorldFault::CutStreams,
        4 => WorldFault::HoldHeaders(chance.bool()),
        5 => WorldFault::Order(chance.u8(..4)),
        6 => WorldFault::Restore(chance.u8(1..6)),
        7 => WorldFault::Amnesia(away(chance)),
        8 | 9 => WorldFault::ClusterAway(away(chance)),
        10 => WorldFault::BreakWatches,
        11 => WorldFault::Compact,
        12 | 13 => WorldFault::Lag(chance.u16(1..40), away(chance)),
        14 => WorldFault::SkipVersions(which),
        15 => WorldFault::CrashPod(which),
        16 => WorldFault::EvictPod(which),
        17 => WorldFault::DeletePod(which),
        18 => WorldFault::UnreadyPod(which, away(chance)),
        19 => WorldFault::LoseNode(chance.u8(..), away(chance)),
        20..=22 => WorldFault::Edit(which, chance.u8(..)),
        23 | 24 => WorldFault::Delete(which),
        25 => WorldFault::Unlabel(which),
        26 => WorldFault::DeleteNamespace(chance.u8(..)),
        27 => WorldFault::DefinitionAway(away(chance)),
        28..=31 => WorldFault::Kill(chance.usize(..WORKERS)),
        36 => WorldFault::Squat(chance.u8(..)),
        37 => WorldFault::SecretAway(away(chance)),
        32 => WorldFault::Kill(chance.usize(WORKERS..ACTORS.len())),
        _ => WorldFault::Crash,
    }
}
