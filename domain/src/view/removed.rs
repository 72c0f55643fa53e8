//! The uids of objects that are gone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many are remembered: far more than can be on their way at once.
const REMEMBERED: usize = 4096;

/// The latest uids that left the view, so that a late answer does not bring them back.
#[derive(Debug, Default)]
pub(super) struct RemovedUids {
    in_order: VecDeque<Arc<str>>,
    /// Up to which resource version nothing that is said of the object is news.
    uids: BTreeMap<Arc<str>, u64>,
}

impl RemovedUids {
    pub(super) fn insert(&mut self, uid: Arc<str>, version: u64) {
        if self.uids.insert(Arc::clone(&uid), version).is_some() {
            return;
        }
        self.in_order.push_back(uid);
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.uids.contains_key(uid)
    }

    /// Whether this version of the object is from before it left.
    pub(super) fn hides(&self, uid: &str, version: u64) -> bool {
        self.uids.get(uid).is_some_and(|left| version <= *left)
    }

    pub(super) fn restore(&mut self, uid: &str) {
        if self.uids.remove(uid).is_some() {
            self.in_order.retain(|known| **known != *uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED, RemovedUids};

    #[test]
    fn the_latest_are_remembered_and_the_oldest_forgotten() {
        let mut removed = RemovedUids::default();
        for number in 0..=REMEMBERED {
            removed.insert(number.to_string().into(), 1);
            removed.insert(number.to_string().into(), 1);
        }
        assert!(!removed.contains("0") && removed.contains("1"));
        removed.restore("1");
        assert!(!removed.contains("1"));
        assert_eq!(removed.in_order.len(), removed.uids.len());
    }
}
