//! What happens to which of the two, and when.

use std::time::Duration;

use fastrand::Rng;

/// Something that happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    /// It stands still for so long, as in a debugger or on a machine without time for it.
    Pause(Duration),
    /// It is killed.
    Kill,
    /// It is asked to end.
    Stop,
    /// It reaches something not at all for so long.
    Cut(Reach, Duration),
    /// It hears no answer for so long, though what it asks for is done.
    LoseAnswers(Reach, Duration),
    /// For so long its writes arrive late: when it has given up waiting.
    Late(Duration),
    /// Everything about the Lease takes long for so long.
    Slow(Duration),
}

/// What a process talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The API server, the Lease included.
    Cluster,
    /// The Lease alone.
    Lease,
    /// The control plane.
    Control,
}

impl Blow {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pause(_) => "paused",
            Self::Kill => "killed",
            Self::Stop => "ended",
            Self::Cut(Reach::Cluster, _) => "cut off from the cluster",
            Self::Cut(Reach::Lease, _) => "cut off from the lease",
            Self::Cut(Reach::Control, _) => "cut off from the control plane",
            Self::LoseAnswers(Reach::Lease, _) => "no answers about the lease",
            Self::LoseAnswers(..) => "no answers",
            Self::Late(_) => "writes arrive late",
            Self::Slow(_) => "a slow lease",
        }
    }

    /// Every name there is.
    pub(super) const NAMES: [&'static str; 10] = [
        "paused",
        "killed",
        "ended",
        "cut off from the cluster",
        "cut off from the lease",
        "cut off from the control plane",
        "no answers about the lease",
        "no answers",
        "writes arrive late",
        "a slow lease",
    ];

    fn at_random(chance: &mut Rng) -> Self {
        let time = Duration::from_millis(chance.u64(500..45_000));
        match chance.u8(..10) {
            0 | 1 => Self::Pause(time),
            2 => Self::Kill,
            3 => Self::Stop,
            4 => Self::Cut(Reach::Cluster, time),
            5 => Self::Cut(Reach::Lease, time),
            6 => Self::Cut(Reach::Control, time),
            7 => Self::LoseAnswers(Reach::at_random(chance), time),
            8 => Self::Late(time),
            _ => Self::Slow(time),
        }
    }
}

impl Reach {
    fn at_random(chance: &mut Rng) -> Self {
        match chance.u8(..3) {
            0 => Self::Cluster,
            1 => Self::Control,
            _ => Self::Lease,
        }
    }
}

/// Whom a blow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The one that writes when it falls.
    Leader,
    /// The one in this place.
    Place(usize),
}

/// Blows in the order in which they fall, from the beginning of the trouble.
pub(super) fn at_random(chance: &mut Rng, length: Duration) -> Vec<(Duration, Target, Blow)> {
    let span = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let count = chance.usize(8..24);
    let mut blows: Vec<_> = (0..count)
        .map(|_| {
            let at = Duration::from_millis(chance.u64(..span));
            let target = match chance.u8(..4) {
                0 => Target::Place(0),
                1 => Target::Place(1),
                _ => Target::Leader,
            };
            (at, target, Blow::at_random(chance))
        })
        .collect();
    blows.sort_by_key(|(at, ..)| *at);
    blows
}
