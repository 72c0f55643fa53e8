//! What an operator or a client of the scheduler asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use krane_domain::ids::{Moment, ObjectKey, WorkKey};
use krane_domain::kinds::{self, Rules};
use krane_domain::object::LiveObject;
use krane_domain::scheduler::Watched;

use super::{Memory, Store};
use crate::followers::Follower;

/// Why a follower is not told of anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowRefusal {
    /// The first complete lists are not done.
    NotListed,
    /// As many follow already as may.
    TooMany,
}

impl Store {
    /// An operator allows the held deletions (D7). Returns what is deleted now.
    pub(crate) fn allow_deletes(&self, now: Moment) -> BTreeSet<ObjectKey> {
        self.with(|memory| memory.allow_deletes(now))
    }

    /// What waits for a retry is tried now: this key with what it needs, or everything. Returns how
    /// many keys.
    pub(crate) fn retry_now(&self, work: Option<&WorkKey>, now: Moment) -> usize {
        self.with(|memory| memory.backlog.retry_now(work, now))
    }

    /// This workload is checked now, whatever it waits for.
    pub(crate) fn check_now(&self, key: &ObjectKey, now: Moment) {
        let work = WorkKey::Workload(key.clone());
        self.with(|memory| {
            memory.backlog.retry_now(Some(&work), now);
            memory.backlog.look(&work, now);
        });
    }

    /// What waits for something that comes from outside, such as writes to be allowed, is tried now.
    pub(crate) fn retry_waiting(&self, now: Moment) {
        self.with(|memory| memory.backlog.retry_waiting(now));
    }

    /// Whether a resync that is asked for can begin; the first one waits until the stream has
    /// replayed everything (D12).
    pub(crate) fn may_resync(&self, now: Moment) -> bool {
        self.with(|memory| memory.last_resync.is_some() || memory.is_replayed(now))
    }

    /// The live primary object of a workload.
    pub(crate) fn live_workload(&self, key: &ObjectKey) -> Option<Arc<LiveObject>> {
        self.with(|memory| memory.view.workload(key).cloned())
    }

    /// What keeps an object from being as it is desired, in words.
    pub(crate) fn waits_for(&self, key: &ObjectKey) -> Option<String> {
        self.with(|memory| memory.waits_for(key))
    }

    /// Lets a follower hear of whatever changes from here on. Returns what is there now, which it
    /// has not heard of.
    pub(crate) fn admit_follower(
        &self,
        follower: &Follower,
    ) -> Result<Vec<ObjectKey>, FollowRefusal> {
        self.with(|memory| {
            if !memory.is_listed {
                return Err(FollowRefusal::NotListed);
            }
            if !memory.followers.admit(follower) {
                return Err(FollowRefusal::TooMany);
            }
            let live = memory.view.workloads();
            Ok(live.map(|live| live.reference.key()).collect())
        })
    }

    /// Shows a follower how these objects are now. Under the lock, so that none is shown after its
    /// end was noticed.
    pub(crate) fn show_present(&self, follower: &Follower, keys: &[ObjectKey]) {
        self.with(|memory| {
            for key in keys {
                if let Some(state) = present(memory, &self.rules, key) {
                    follower.show_first(self.controller, state);
                }
            }
        });
    }
}

/// How an object is now. One that makes krane panic is left out; the reporter logs it.
fn present(memory: &Memory, rules: &Rules, key: &ObjectKey) -> Option<Watched> {
    let live = memory.view.workload(key)?;
    kinds::question_id(memory.view.controller(), live)?;
    let observation = memory.digest(live, rules).ok().flatten()?;
    Watched::of(&observation.report, live)
}
