//! What the requests of one connection have in common: whose they are, and what they may take.

use std::sync::Arc;

use super::answers::UnderWay;
use super::crowd::{Activity, Entry};
use super::tasks::Tasks;
use super::{Patience, Peer};
use crate::bounds::Bounds;
use crate::room::Room;

/// The rooms of one server for requests and answers; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    requests: Room,
    answers: Room,
}

impl Rooms {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            requests: Room::new(bounds.requests),
            answers: Room::new(bounds.answers),
        }
    }
}

/// One connection, for its requests.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) peer: Peer,
    rooms: Rooms,
    activity: Activity,
    /// How many HTTP/2 streams it may have.
    pub(super) streams: u32,
    patience: Patience,
    tasks: Tasks,
}

impl Visit {
    pub(super) fn new(
        peer: Peer,
        rooms: &Rooms,
        entry: &Entry,
        patience: Patience,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            peer,
            rooms: rooms.clone(),
            activity: entry.activity(),
            streams: entry.streams(),
            patience,
            tasks,
        })
    }

    /// A request of it begins, if there is room for one more.
    pub(super) fn begin(&self) -> Option<UnderWay> {
        let peer = Some(self.peer.0);
        let place = self.rooms.requests.enter(peer)?;
        Some(UnderWay::new(
            place,
            (self.rooms.answers.clone(), peer),
            self.activity.begin(),
            self.patience,
        ))
    }

    /// Watches over it from the future that answers it.
    pub(super) fn watch(&self, under_way: &UnderWay) {
        self.tasks.watch(under_way.progress());
    }
}
