//! Which of several processes writes, in words.

use krane_actors::lease::{Leadership, Role};
use serde::Serialize;

use super::{Epoch, Stamp};

/// What this process is in the election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    /// `leader` or `standby`.
    pub role: &'static str,
    /// Since when it is that.
    pub since: Stamp,
    /// Who this process is in the election.
    pub identity: String,
    /// Who holds the lease, as far as this process has seen.
    pub holder: Option<String>,
    /// Since when, by the holder's own clock.
    pub held_since: Option<Stamp>,
    /// Why the lease cannot be read or written, if it cannot.
    pub trouble: Option<String>,
}

impl LeaseView {
    /// What is shown; nothing when no lease is in use.
    #[must_use]
    pub fn of(leadership: &Leadership, epoch: &Epoch) -> Option<Self> {
        let shown = leadership.shown()?;
        let held_since = shown.acquired_at.filter(|_| shown.holder.is_some());
        Some(Self {
            role: shown.role.name(),
            since: epoch.at(shown.since),
            identity: shown.identity.to_string(),
            holder: shown.holder.map(|holder| holder.to_string()),
            held_since: held_since.and_then(Stamp::of_unix_seconds),
            trouble: shown.trouble.map(|trouble| trouble.to_string()),
        })
    }

    /// Whether this process only stands by.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.role == Role::Standby.name()
    }
}
