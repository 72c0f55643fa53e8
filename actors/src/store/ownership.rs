//! Whose pod asks for secrets, as far as this controller knows (D50).

use krane_domain::ids::Moment;
use krane_domain::secrets::{Ownership, PodOrigin, Unproved};

use super::{Memory, Store};

impl Store {
    /// What the desired states say of a pod, in the term in which this process leads; none for a
    /// standby. A logarithmic look-up under the lock.
    ///
    /// A state that names the pod proves it at any time. That no state does counts only once all
    /// of them are known.
    pub fn ownership(&self, pod: &PodOrigin<'_>, term: Option<u64>, now: Moment) -> Ownership {
        let Some(term) = term else {
            return Ownership::Unproved(Unproved::Standby);
        };
        let mut memory = self.inner.lock();
        let judged = if memory.term == Some(term) {
            memory.backlog.workloads().judge(pod)
        } else {
            // What is known is of an earlier term, and another process may have written since.
            Ownership::Unproved(Unproved::StreamUnread)
        };
        if judged == Ownership::Desired || memory.has_read_stream(Some(term), now) {
            judged
        } else {
            Ownership::Unproved(Unproved::StreamUnread)
        }
    }

    /// Why no pod can be refused for what the desired states say, if that is so at present.
    pub fn cannot_judge_pods(&self, term: Option<u64>, now: Moment) -> Option<Unproved> {
        if term.is_none() {
            return Some(Unproved::Standby);
        }
        let has_read = self.inner.lock().has_read_stream(term, now);
        (!has_read).then_some(Unproved::StreamUnread)
    }
}

impl Memory {
    /// Whether the stream was read whole in this term. One that has said nothing at all may belong
    /// to a control plane that is slow to answer.
    fn has_read_stream(&mut self, term: Option<u64>, now: Moment) -> bool {
        self.term == term && self.stream.last_item_at.is_some() && self.is_replayed(now)
    }
}
