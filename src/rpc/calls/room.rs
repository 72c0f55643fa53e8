//! Room for calls: so many of all senders, so many of each.

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
    /// Senders without a call are not in it.
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
        let mut taken = self.taken.lock();
        let of_this_one = taken.each.get(&peer).copied().unwrap_or_default();
        if taken.all >= self.most || of_this_one >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.each.insert(peer, of_this_one + 1);
        Some(Place {
            taken: Arc::clone(&self.taken),
            peer,
        })
    }
}

/// The place of one call.
#[derive(Debug)]
pub(super) struct Place {
    taken: Arc<Mutex<Taken>>,
    peer: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(of_this_one) = taken.each.get_mut(&self.peer) {
            *of_this_one = of_this_one.saturating_sub(1);
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
}
