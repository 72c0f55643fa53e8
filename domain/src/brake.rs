//! The brake on deletions that nobody asked for outright.
//!
//! When the control plane no longer knows an object, krane deletes it; but a control plane that
//! lost its memory looks the same. Per controller at most max(3, 10 %) of its objects go this way
//! within 60 minutes. If one pass finds more, nothing of that pass is deleted until a person or
//! the control plane says so. Explicit deletes are never braked.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::ids::{Moment, ObjectKey};

/// The window the allowance counts in.
pub const WINDOW: Duration = Duration::from_secs(60 * 60);
/// What is always allowed within the window, however few objects there are.
pub const MINIMUM: usize = 3;

/// What may be deleted of what one pass found unknown to the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These.
    Release(BTreeSet<ObjectKey>),
    /// Nothing; what was found is held until released.
    Hold,
}

/// Counts deletions on `not_found` and holds those that are too many.
#[derive(Clone, Debug, Default)]
pub struct Brake {
    recent: VecDeque<Moment>,
    held: BTreeSet<ObjectKey>,
}

impl Brake {
    /// Judges what one complete pass found unknown, out of `objects` in all.
    ///
    /// Repetition releases nothing: what is held stays held, however many passes agree. What is
    /// new in this pass has an allowance of its own.
    pub fn judge(
        &mut self,
        unknown: BTreeSet<ObjectKey>,
        objects: usize,
        max_percent: u8,
        now: Moment,
    ) -> Verdict {
        while self.recent.front().is_some_and(|at| *at + WINDOW <= now) {
            self.recent.pop_front();
        }
        if unknown.is_empty() {
            return Verdict::Release(unknown);
        }
        let allowance = (objects * usize::from(max_percent) / 100).max(MINIMUM);
        let left = allowance.saturating_sub(self.recent.len());
        if unknown.len() > left {
            self.held.extend(unknown);
            return Verdict::Hold;
        }
        let free: BTreeSet<ObjectKey> = unknown.difference(&self.held).cloned().collect();
        if free.is_empty() {
            return Verdict::Hold;
        }
        self.recent.extend(free.iter().map(|_| now));
        Verdict::Release(free)
    }

    /// The objects whose deletion is held.
    pub fn held(&self) -> &BTreeSet<ObjectKey> {
        &self.held
    }

    /// Forgets held objects that are gone for another reason.
    pub fn retain(&mut self, exists: impl Fn(&ObjectKey) -> bool) {
        self.held.retain(|key| exists(key));
    }

    /// Everything is asked anew. What was deleted within the window is deleted all the same.
    pub fn begin_anew(&mut self) {
        self.held.clear();
    }

    /// The control plane spoke about the object again: nothing to hold.
    pub fn named(&mut self, key: &ObjectKey) {
        self.held.remove(key);
    }

    /// A person released everything that is held.
    pub fn release(&mut self, now: Moment) -> BTreeSet<ObjectKey> {
        self.recent.extend(self.held.iter().map(|_| now));
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::{Brake, Verdict, WINDOW};
    use crate::ids::ObjectKey;

    fn keys(range: std::ops::Range<usize>) -> BTreeSet<ObjectKey> {
        range
            .map(|n| ObjectKey::new("ns", format!("d{n}")))
            .collect()
    }

    #[test]
    fn a_few_unknown_objects_are_released() {
        let mut brake = Brake::default();
        assert_eq!(
            brake.judge(keys(0..3), 5, 10, Duration::ZERO),
            Verdict::Release(keys(0..3))
        );
    }

    #[test]
    fn what_is_held_holds_up_no_deletion_found_later() {
        let mut brake = Brake::default();
        assert_eq!(
            brake.judge(keys(0..9), 20, 10, Duration::ZERO),
            Verdict::Hold
        );
        // Only some of them were asked about in the next pass, and one is new.
        let mut unknown = keys(7..9);
        unknown.extend(keys(15..16));
        assert_eq!(
            brake.judge(unknown, 20, 10, Duration::from_secs(60)),
            Verdict::Release(keys(15..16))
        );
        assert_eq!(brake.held(), &keys(0..9));
    }

    #[test]
    fn a_thousand_unknown_objects_are_held_however_many_passes_agree() {
        let mut brake = Brake::default();
        for pass in 0..500 {
            let now = Duration::from_secs(60 * pass);
            assert_eq!(brake.judge(keys(0..1000), 1000, 10, now), Verdict::Hold);
        }
        assert_eq!(brake.held().len(), 1000);
    }

    #[test]
    fn the_allowance_counts_over_the_window_and_comes_back_after_it() {
        let mut brake = Brake::default();
        assert!(matches!(
            brake.judge(keys(0..3), 5, 10, Duration::ZERO),
            Verdict::Release(_)
        ));
        let soon = Duration::from_secs(60);
        assert_eq!(brake.judge(keys(3..4), 5, 10, soon), Verdict::Hold);
        // Named again, so no longer held; then unknown once more after the window.
        brake.named(&ObjectKey::new("ns", "d3"));
        assert!(matches!(
            brake.judge(keys(3..4), 5, 10, WINDOW + soon),
            Verdict::Release(_)
        ));
    }

    #[test]
    fn a_person_releases_what_is_held() {
        let mut brake = Brake::default();
        assert_eq!(
            brake.judge(keys(0..50), 50, 10, Duration::ZERO),
            Verdict::Hold
        );
        assert_eq!(brake.release(Duration::ZERO).len(), 50);
        assert!(brake.held().is_empty());
    }

    #[test]
    fn an_object_that_is_named_again_is_not_held_by_the_next_pass() {
        let mut brake = Brake::default();
        assert_eq!(
            brake.judge(keys(0..50), 50, 10, Duration::ZERO),
            Verdict::Hold
        );
        for key in keys(0..50) {
            brake.named(&key);
        }
        assert!(matches!(
            brake.judge(keys(50..51), 50, 10, Duration::from_secs(60)),
            Verdict::Release(_)
        ));
    }

    #[test]
    fn an_unanswered_question_does_not_let_go_of_what_is_held() {
        let mut brake = Brake::default();
        assert_eq!(
            brake.judge(keys(0..50), 50, 10, Duration::ZERO),
            Verdict::Hold
        );
        // The next pass reached only one of them.
        assert_eq!(
            brake.judge(keys(0..1), 50, 10, Duration::from_secs(60)),
            Verdict::Hold
        );
        assert_eq!(brake.held().len(), 50);
        brake.retain(|key| *key.name != *"d7");
        assert_eq!(brake.held().len(), 49);
    }
}
