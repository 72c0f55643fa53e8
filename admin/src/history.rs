//! The last hour, a few numbers at a time: kept in memory, so that a page that is opened later
//! still shows what was.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use krane_domain::ids::{Controller, Moment};
use parking_lot::Mutex;
use serde::Serialize;

use super::model::{Sources, Stamp};

/// Time between two samples.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// Samples kept: an hour of them.
const KEPT: usize = 360;
/// Height of a drawn line.
const HEIGHT: u64 = 24;

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct History {
    samples: Mutex<VecDeque<Sample>>,
}

#[derive(Debug)]
struct Sample {
    at: Moment,
    numbers: Vec<u64>,
}

/// One number over the last hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    /// Whose it is; none for the whole process.
    pub(super) controller: Option<&'static str>,
    /// What it counts, one of a closed set.
    pub(super) what: &'static str,
    /// The value last sampled.
    pub(super) now: u64,
    /// The highest in the hour …
    pub(super) highest: u64,
    /// … and when it was that last.
    pub(super) highest_at: Option<Stamp>,
    /// When each sample was taken, in seconds before the last one, and its value; oldest first.
    pub(super) samples: Vec<(u64, u64)>,
}

impl Line {
    /// The points of a polyline in a box of 360 by 24, the newest on the right.
    pub(super) fn points(&self) -> String {
        let highest = self.highest.max(1);
        let mut points = String::new();
        for (age, value) in &self.samples {
            let x = (KEPT as u64).saturating_sub(age / EVERY.as_secs());
            let y = HEIGHT - 1 - value * (HEIGHT - 2) / highest;
            let _ = write!(points, "{x},{y} ");
        }
        points
    }
}

/// The numbers of a controller, by name.
const OF_CONTROLLER: [&str; 3] = ["cursor lag", "not in place", "reports waiting"];
/// Those of the process.
const OF_PROCESS: [&str; 2] = ["fullest mailbox", "actor restarts"];

impl History {
    /// Takes a sample of what is published.
    pub(super) fn sample(&self, sources: &Sources) {
        let mut numbers = Vec::new();
        for store in &sources.stores {
            let lag = store.lag();
            numbers.extend([lag.versions, lag.unapplied as u64, lag.undelivered as u64]);
        }
        let actors = sources.board.all();
        let depth = actors
            .iter()
            .filter_map(|(_, cell)| Some(cell.gate()?.depth()));
        numbers.push(depth.max().unwrap_or_default() as u64);
        numbers.push(actors.iter().map(|(_, cell)| cell.read().restarts).sum());
        let mut samples = self.samples.lock();
        if samples.len() == KEPT {
            samples.pop_front();
        }
        let at = sources.board.now();
        samples.push_back(Sample { at, numbers });
    }

    /// Every number over the last hour.
    pub(super) fn lines(&self, sources: &Sources) -> Vec<Line> {
        let stores = sources.stores.iter().map(|store| Some(store.controller()));
        let of_controllers = stores.flat_map(|store| OF_CONTROLLER.map(|what| (store, what)));
        let of_process = OF_PROCESS.map(|what| (None, what));
        let samples = self.samples.lock();
        let last = samples.back().map(|sample| sample.at).unwrap_or_default();
        of_controllers
            .chain(of_process)
            .enumerate()
            .map(|(index, (controller, what))| {
                let values = samples
                    .iter()
                    .filter_map(|sample| Some((sample.at, *sample.numbers.get(index)?)));
                let highest = values.clone().max_by_key(|(_, value)| *value);
                Line {
                    controller: controller.map(Controller::name),
                    what,
                    now: values.clone().next_back().map_or(0, |(_, value)| value),
                    highest: highest.map_or(0, |(_, value)| value),
                    highest_at: highest.map(|(at, _)| sources.epoch.at(at)),
                    samples: values
                        .map(|(at, value)| (last.saturating_sub(at).as_secs(), value))
                        .collect(),
                }
            })
            .collect()
    }
}
