//! What becomes of actors, for whoever keeps it.

use std::sync::Arc;
use std::time::Duration;

use crate::Moment;

/// Something became of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// When.
    pub at: Moment,
    /// The group it belongs to.
    pub group: Option<&'static str>,
    /// Its path.
    pub path: Arc<str>,
    /// What.
    pub fate: Fate,
}

/// What became of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs again after a failure.
    Restarted,
    /// It failed.
    Failed {
        /// One of [`Cause::kind`](crate::cause::Cause::kind).
        kind: &'static str,
        /// The words.
        text: Arc<str>,
        /// When it is started again.
        pause: Duration,
        /// Whether it was put aside for a while.
        is_parked: bool,
    },
}
