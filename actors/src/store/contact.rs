//! Whether the control plane can be reached, as the breaker keeps it.

use std::time::Duration;

use krane_domain::ids::Moment;

use super::{Memory, Store};
use crate::chance::Chance;

/// After a silence of more than this everything is reported again (D26).
const FORGETFUL: Duration = Duration::from_secs(30);
/// Reports that are sent again are spread over this long.
const RESEND_SPREAD: Duration = Duration::from_secs(2);

impl Store {
    /// Whether a request to the control plane may go out now. When the breaker is open and its
    /// probe is due, this request is the probe.
    pub(crate) fn allow_request(&self, now: Moment) -> bool {
        self.with(|memory| memory.breaker.allow(now))
    }

    /// A request ended without an outcome: if it was the breaker's probe, another one may go out.
    pub(crate) fn abandon_probe(&self, now: Moment) {
        self.with(|memory| memory.breaker.abandon_probe(now));
    }

    /// The control plane gave a sign of life after a silence of at least `silence`: the breaker
    /// closes. Returns whether reports that were held back may go now.
    pub(crate) fn note_sign_of_life(&self, silence: Duration, now: Moment) -> bool {
        self.with(|memory| memory.note_sign_of_life(silence, &self.chance, now))
    }

    /// A request did not reach the control plane. Returns whether that opened the breaker.
    pub(crate) fn note_unreachable(&self, now: Moment) -> bool {
        self.with(|memory| memory.note_unreachable(&self.chance, now))
    }

    /// The control plane may know none of it: everything live is reported again, spread over 2 s.
    pub(crate) fn resend_all_reports(&self, now: Moment) {
        self.with(|memory| memory.resend_all_reports(&self.chance, now));
    }
}

impl Memory {
    /// See [`Store::note_sign_of_life`].
    pub(super) fn note_sign_of_life(
        &mut self,
        silence: Duration,
        chance: &Chance,
        now: Moment,
    ) -> bool {
        let failing = self.breaker.success(now);
        let has_forgotten = may_have_forgotten(failing, silence);
        if has_forgotten {
            self.resend_all_reports(chance, now);
        }
        has_forgotten || failing.is_some()
    }

    /// See [`Store::note_unreachable`].
    pub(super) fn note_unreachable(&mut self, chance: &Chance, now: Moment) -> bool {
        self.breaker.transport_failure(now, chance.unit())
    }

    fn resend_all_reports(&mut self, chance: &Chance, now: Moment) {
        self.outbox
            .refresh(|_| now + RESEND_SPREAD.mul_f64(chance.unit()));
    }
}

/// Whether the silence was so long that the control plane may have lost what it was told.
/// `failing` is how long requests failed; `silence` is what else is known of how long it lasted.
fn may_have_forgotten(failing: Option<Duration>, silence: Duration) -> bool {
    failing.unwrap_or_default().max(silence) > FORGETFUL
}
