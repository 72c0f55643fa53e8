//! Room for connections, calls or their bytes: so much of all senders, so much of each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The room of one server. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Room {
    most: usize,
    most_of_one: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Senders that take none are not in it.
    each: BTreeMap<Option<IpAddr>, usize>,
}

impl Room {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self {
            most,
            most_of_one,
            taken: Arc::default(),
        }
    }

    /// A place for a call of this sender, until it is dropped.
    pub(super) fn enter(&self, peer: Option<IpAddr>) -> Option<Place> {
        let mut place = self.none_yet(peer);
        place.grow(1).then_some(place)
    }

    /// A place of this sender that takes nothing, and may grow.
    pub(super) fn none_yet(&self, peer: Option<IpAddr>) -> Place {
        Place {
            room: self.clone(),
            peer,
            size: 0,
        }
    }
}

/// A place in a room; what it takes is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    peer: Option<IpAddr>,
    size: usize,
}

impl Place {
    /// Takes more; whether there was room for it.
    pub(super) fn grow(&mut self, by: usize) -> bool {
        let mut taken = self.room.taken.lock();
        let of_this_one = taken.each.get(&self.peer).copied().unwrap_or_default();
        let (all, one) = (taken.all.saturating_add(by), of_this_one.saturating_add(by));
        if by == 0 || all > self.room.most || one > self.room.most_of_one {
            return by == 0;
        }
        taken.all = all;
        taken.each.insert(self.peer, one);
        self.size += by;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.size == 0 {
            return;
        }
        let mut taken = self.room.taken.lock();
        taken.all = taken.all.saturating_sub(self.size);
        if let Some(of_this_one) = taken.each.get_mut(&self.peer) {
            *of_this_one = of_this_one.saturating_sub(self.size);
            if *of_this_one == 0 {
                taken.each.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::Room;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_place_is_free_again_when_its_call_has_ended() {
        let room = Room::new(2, 2);
        let (first, second) = (
            room.enter(Some(peer(1))).unwrap(),
            room.enter(Some(peer(2))).unwrap(),
        );
        assert!(room.enter(Some(peer(3))).is_none(), "full");
        drop(first);
        let third = room.enter(Some(peer(3))).unwrap();
        assert!(room.enter(None).is_none(), "full again");
        drop((second, third));
        assert!(room.taken.lock().each.is_empty(), "nobody is remembered");
        assert_eq!(room.taken.lock().all, 0);
    }

    #[test]
    fn one_sender_does_not_take_the_room_of_all() {
        let room = Room::new(10, 3);
        let of_one: Vec<_> = (0..10).filter_map(|_| room.enter(Some(peer(1)))).collect();
        assert_eq!(of_one.len(), 3);
        let of_others: Vec<_> = (2..20)
            .filter_map(|last| room.enter(Some(peer(last))))
            .collect();
        assert_eq!(of_others.len(), 7);
    }

    #[test]
    fn a_place_grows_as_far_as_there_is_room_and_gives_all_of_it_back() {
        let room = Room::new(100, 60);
        let (mut first, mut second) = (room.none_yet(Some(peer(1))), room.none_yet(Some(peer(2))));
        assert!(first.grow(40) && first.grow(20) && !first.grow(1));
        assert!(first.grow(0) && second.grow(40) && !second.grow(1));
        assert!(!room.none_yet(Some(peer(1))).grow(1), "another of its own");
        drop(first);
        assert!(second.grow(20));
        drop(second);
        assert!(room.taken.lock().each.is_empty());
        assert_eq!(room.taken.lock().all, 0);
        assert!(!room.none_yet(None).grow(usize::MAX));
    }
}
