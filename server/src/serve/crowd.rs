//! Who has connections, and whose are closed when there are no more.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounds::Bounds;

/// The connections of one server. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    bounds: Bounds,
    guests: Arc<Mutex<Guests>>,
}

#[derive(Debug, Default)]
struct Guests {
    next: u64,
    count: usize,
    /// Senders that have none are not in it.
    each: BTreeMap<IpAddr, BTreeMap<u64, Guest>>,
}

#[derive(Debug)]
struct Guest {
    activity: Activity,
    leave: CancellationToken,
}

/// What a connection is doing. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<(usize, Instant)>>);

/// A request on a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy(Activity);

/// A connection that was let in, until it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    crowd: Crowd,
    peer: IpAddr,
    number: u64,
    activity: Activity,
    streams: u32,
    leave: CancellationToken,
}

impl Activity {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((0, Instant::now()))))
    }

    /// A request begins.
    pub(super) fn begin(&self) -> Busy {
        self.0.lock().0 += 1;
        Busy(self.clone())
    }

    /// The smallest is missed least: it has no request, for the longest time.
    fn worth(&self) -> (bool, Instant) {
        let (requests, since) = *self.0.lock();
        (requests > 0, since)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = self.0.0.lock();
        *activity = (activity.0.saturating_sub(1), Instant::now());
    }
}

impl Crowd {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            guests: Arc::default(),
        }
    }

    /// Lets a connection in, if it is not one too many of its sender's. Where all places are taken,
    /// one of the sender that has most of them has to go for it.
    pub(super) fn enter(&self, peer: IpAddr) -> Option<Entry> {
        let mut guests = self.guests.lock();
        let own = guests.each.get(&peer).map_or(0, BTreeMap::len);
        if own >= self.bounds.connections_per_sender {
            return None;
        }
        if guests.count >= self.bounds.connections && !guests.make_room(own) {
            return None;
        }
        let streams = if guests.count < self.bounds.crowded {
            self.bounds.streams
        } else {
            self.bounds.few_streams
        };
        guests.next += 1;
        guests.count += 1;
        let (number, activity, leave) = (guests.next, Activity::new(), CancellationToken::new());
        let guest = Guest {
            activity: activity.clone(),
            leave: leave.clone(),
        };
        guests.each.entry(peer).or_default().insert(number, guest);
        Some(Entry {
            crowd: self.clone(),
            peer,
            number,
            activity,
            streams,
            leave,
        })
    }
}

impl Guests {
    /// Closes a connection for one of a sender that has so many; whether there was one to close.
    ///
    /// The busiest sender's goes, one without a request first. When no sender has many more, one
    /// without a request goes, of a sender that has no fewer.
    fn make_room(&mut self, own: usize) -> bool {
        let most = self.each.values().map(BTreeMap::len).max().unwrap_or(0);
        let is_fair = most <= own + 1;
        let least_missed = self
            .each
            .iter()
            .filter(|(_, guests)| guests.len() >= if is_fair { own } else { most })
            .flat_map(|(peer, guests)| guests.iter().map(|(number, it)| (*peer, *number, it)))
            .map(|(peer, number, guest)| (guest.activity.worth(), peer, number))
            .min();
        match least_missed {
            Some(((is_busy, _), peer, number)) if !(is_fair && is_busy) => {
                if let Some(guest) = self.remove(peer, number) {
                    guest.leave.cancel();
                }
                true
            }
            Some(_) | None => false,
        }
    }

    fn remove(&mut self, peer: IpAddr, number: u64) -> Option<Guest> {
        let of_this_one = self.each.get_mut(&peer)?;
        let guest = of_this_one.remove(&number)?;
        if of_this_one.is_empty() {
            self.each.remove(&peer);
        }
        self.count -= 1;
        Some(guest)
    }
}

impl Entry {
    pub(super) fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// How many streams it may have.
    pub(super) const fn streams(&self) -> u32 {
        self.streams
    }

    /// Ends when another sender needs the place more.
    pub(super) async fn has_to_go(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.crowd.guests.lock().remove(self.peer, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Bounds, Crowd, Entry};

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn crowd(connections: usize, connections_per_sender: usize) -> Crowd {
        Crowd::new(Bounds {
            connections,
            connections_per_sender,
            ..Bounds::RPC
        })
    }

    fn left(entries: &[Entry]) -> usize {
        entries.iter().filter(|it| it.leave.is_cancelled()).count()
    }

    /// (X2): the idle ones of the busiest sender go first, then its busy ones.
    #[test]
    fn at_the_limit_the_busiest_sender_makes_room_for_others() {
        let crowd = crowd(20, 10);
        let of = |sender, count| -> Vec<_> {
            (0..count)
                .filter_map(|_| crowd.enter(peer(sender)))
                .collect()
        };
        let (first, second) = (of(1, 10), of(2, 10));
        assert_eq!((first.len(), second.len()), (10, 10));
        assert!(crowd.enter(peer(1)).is_none(), "its own limit");
        let busy: Vec<_> = first.iter().map(|it| it.activity().begin()).collect();
        let third = of(3, 1);
        assert_eq!((third.len(), left(&first), left(&second)), (1, 0, 1));
        // Now the first has most, and all of its connections are busy.
        let fourth = of(4, 1);
        assert_eq!((fourth.len(), left(&first), left(&second)), (1, 1, 1));
        let many: Vec<_> = (5..=18).flat_map(|sender| of(sender, 1)).collect();
        assert_eq!(many.len(), 14, "everybody gets one");
        assert_eq!(crowd.guests.lock().count, 20);
        drop((first, second, third, fourth, many, busy));
        let guests = crowd.guests.lock();
        assert_eq!((guests.count, guests.each.len()), (0, 0));
    }

    #[test]
    fn among_equals_only_a_connection_without_a_request_goes() {
        let crowd = crowd(3, 10);
        let all: Vec<_> = (1..=3).filter_map(|it| crowd.enter(peer(it))).collect();
        let busy: Vec<_> = all.iter().map(|it| it.activity().begin()).collect();
        assert!(crowd.enter(peer(4)).is_none());
        drop(busy);
        let last = crowd.enter(peer(4));
        assert!(last.is_some());
        assert_eq!(left(&all), 1);
    }
}
