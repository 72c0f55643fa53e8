//! Room for connections, calls or their bytes: so much of all senders, so much of each.
//!
//! The first of what a sender takes comes from a reserve for such small holdings, so those who take
//! all of the rest do not keep others out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bounds::Quota;

/// The room of one server. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Room {
    quota: Quota,
    taken: Arc<Mutex<Taken>>,
}

/// What is taken, by all or by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    shared: usize,
    reserved: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: Size,
    /// Senders that take none are not in it.
    each: BTreeMap<Option<IpAddr>, Size>,
}

impl Size {
    const fn whole(self) -> usize {
        self.shared.saturating_add(self.reserved)
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            shared: self.shared.saturating_add(other.shared),
            reserved: self.reserved.saturating_add(other.reserved),
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            shared: self.shared.saturating_sub(other.shared),
            reserved: self.reserved.saturating_sub(other.reserved),
        }
    }
}

impl Room {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quota,
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
            size: Size::default(),
        }
    }

    /// What a sender takes for so much more, if there is room for it.
    fn part(&self, all: Size, one: Size, by: usize) -> Option<Size> {
        let Quota {
            shared,
            reserved,
            guaranteed,
            per_sender,
        } = self.quota;
        let own = guaranteed.saturating_sub(one.reserved);
        let from_reserve = by.min(own).min(reserved.saturating_sub(all.reserved));
        let part = Size {
            shared: by - from_reserve,
            reserved: from_reserve,
        };
        let has_room = all.plus(part).shared <= shared && one.plus(part).whole() <= per_sender;
        has_room.then_some(part)
    }
}

/// A place in a room; what it takes is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    peer: Option<IpAddr>,
    size: Size,
}

impl Place {
    /// Takes more; whether there was room for it.
    pub(super) fn grow(&mut self, by: usize) -> bool {
        if by == 0 {
            return true;
        }
        let mut taken = self.room.taken.lock();
        let one = taken.each.get(&self.peer).copied().unwrap_or_default();
        let Some(part) = self.room.part(taken.all, one, by) else {
            return false;
        };
        taken.all = taken.all.plus(part);
        taken.each.insert(self.peer, one.plus(part));
        self.size = self.size.plus(part);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.size == Size::default() {
            return;
        }
        let mut taken = self.room.taken.lock();
        taken.all = taken.all.minus(self.size);
        if let Some(of_this_one) = taken.each.get_mut(&self.peer) {
            *of_this_one = of_this_one.minus(self.size);
            if *of_this_one == Size::default() {
                taken.each.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Room, Size};
    use crate::bounds::Quota;

    fn room(shared: usize, per_sender: usize) -> Room {
        Room::new(Quota {
            shared,
            reserved: 0,
            guaranteed: 0,
            per_sender,
        })
    }

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_place_is_free_again_when_its_call_has_ended() {
        let room = room(2, 2);
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
        assert_eq!(room.taken.lock().all, Size::default());
    }

    #[test]
    fn one_sender_does_not_take_the_room_of_all() {
        let room = room(10, 3);
        let of_one: Vec<_> = (0..10).filter_map(|_| room.enter(Some(peer(1)))).collect();
        assert_eq!(of_one.len(), 3);
        let of_others: Vec<_> = (2..20)
            .filter_map(|last| room.enter(Some(peer(last))))
            .collect();
        assert_eq!(of_others.len(), 7);
    }

    #[test]
    fn a_place_grows_as_far_as_there_is_room_and_gives_all_of_it_back() {
        let room = room(100, 60);
        let (mut first, mut second) = (room.none_yet(Some(peer(1))), room.none_yet(Some(peer(2))));
        assert!(first.grow(40) && first.grow(20) && !first.grow(1));
        assert!(first.grow(0) && second.grow(40) && !second.grow(1));
        assert!(!room.none_yet(Some(peer(1))).grow(1), "another of its own");
        drop(first);
        assert!(second.grow(20));
        drop(second);
        assert!(room.taken.lock().each.is_empty());
        assert_eq!(room.taken.lock().all, Size::default());
        assert!(!room.none_yet(None).grow(usize::MAX));
    }

    /// (X2): however much others have taken, each sender has its guarantee.
    #[test]
    fn every_sender_has_what_is_guaranteed_to_it() {
        let room = Room::new(Quota {
            shared: 20,
            reserved: 30,
            guaranteed: 3,
            per_sender: 10,
        });
        let take = |last| -> Vec<_> {
            (0..20)
                .map_while(|_| room.enter(Some(peer(last))))
                .collect()
        };
        let greedy: Vec<_> = (1..=5).map(take).collect();
        let counts: Vec<_> = greedy.iter().map(Vec::len).collect();
        assert_eq!(counts, [10, 10, 9, 3, 3]);
        let honest: Vec<_> = (6..=10).map(take).collect();
        assert!(honest.iter().all(|taken| taken.len() == 3));
        assert!(
            room.enter(Some(peer(11))).is_none(),
            "the reserve has an end"
        );
        drop((greedy, honest));
        assert_eq!(room.taken.lock().all, Size::default());
        assert_eq!(take(12).len(), 10);
    }
}
