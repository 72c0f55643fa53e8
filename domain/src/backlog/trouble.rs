//! Why a key is not as it should be, and when it is tried again.

use std::fmt;
use std::time::Duration;

use crate::ids::{Moment, WorkKey};
use crate::invalid::Invalid;

/// What kind of trouble a key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleKind {
    /// The state itself is at fault: invalid, refused for good, or it broke its lane.
    Quarantined,
    /// Permissions, admission or a foreign object stand in the way; a person has to act.
    Misconfigured,
    /// It failed for a passing reason.
    Transient,
    /// A person put the object on hold.
    Held,
    /// It waits for something that will come: a deletion to finish, a CRD.
    Waiting,
}

impl TroubleKind {
    /// Name for logs and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::Misconfigured => "misconfigured",
            Self::Transient => "retrying",
            Self::Held => "held",
            Self::Waiting => "waiting",
        }
    }

    /// First and longest time between attempts.
    const fn delays(self) -> (Duration, Duration) {
        match self {
            Self::Quarantined => (Duration::from_secs(5), Duration::from_secs(600)),
            // Soon at first: an API server that has just started refuses what it allows a second later.
            Self::Misconfigured => (Duration::from_secs(1), Duration::from_secs(300)),
            Self::Transient => (Duration::from_millis(250), Duration::from_secs(5)),
            Self::Held => (Duration::from_secs(5), Duration::from_secs(60)),
            Self::Waiting => (Duration::from_secs(1), Duration::from_secs(20)),
        }
    }
}

/// What went wrong, in the words an operator needs. Shown, it is problem and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The kind.
    pub kind: TroubleKind,
    /// What is wrong with which object. Never secret content.
    pub problem: String,
    /// The field of the desired state that is at fault, if one is.
    pub field: Option<String>,
    /// What to do about it, or what krane will do.
    pub remedy: Option<String>,
    /// The server asked to wait at least this long.
    pub retry_after: Option<Duration>,
    /// The HTTP status the API server refused it with; 0 when no answer came.
    pub code: Option<u16>,
}

impl Trouble {
    /// Trouble of this kind.
    pub fn new(kind: TroubleKind, problem: impl Into<String>) -> Self {
        Self {
            kind,
            problem: problem.into(),
            field: None,
            remedy: None,
            retry_after: None,
            code: None,
        }
    }

    /// A state that is invalid in itself; `what` names its object.
    pub fn invalid(what: impl fmt::Display, invalid: &Invalid) -> Self {
        let Invalid {
            field,
            problem,
            remedy,
        } = invalid;
        let mut trouble = Self::new(
            TroubleKind::Quarantined,
            format!("{what}: {field}: {problem}"),
        )
        .remedy(remedy);
        trouble.field = Some(field.clone());
        trouble
    }

    /// With what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// How long to wait before attempt number `attempts + 1`: doubling, capped, and with
    /// `jitter` in 0..1 between half and all of it.
    pub fn delay(&self, attempts: u32, jitter: f64) -> Duration {
        let (first, cap) = self.kind.delays();
        let doubled = first
            .saturating_mul(1u32 << attempts.saturating_sub(1).min(20))
            .min(cap);
        let spread = doubled.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
        spread.max(self.retry_after.unwrap_or(Duration::ZERO))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remedy {
            Some(remedy) => write!(f, "{}; {remedy}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

/// A state in quarantine, or another key in trouble, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTrouble {
    /// The key.
    pub key: WorkKey,
    /// The version that fails; 0 where there is none.
    pub version: u64,
    /// What is wrong.
    pub trouble: Trouble,
    /// Attempts so far.
    pub attempts: u32,
    /// Since when it fails.
    pub since: Moment,
    /// When it is tried again.
    pub retry_at: Moment,
}
