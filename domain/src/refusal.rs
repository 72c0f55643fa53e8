//! What an API server's refusal means for the work that met it.
//!
//! The status code alone misleads: schema errors of server-side apply are HTTP 500 without a
//! reason. Classes were measured on a real API server.

mod classify;

use std::fmt;
use std::time::Duration;

pub use classify::{ApiStatus, Cause, classify};

/// How to go on after the API server (or the way to it) said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalClass {
    /// This rendering can never be accepted: quarantine the state.
    Permanent,
    /// It may work later: retry with backoff.
    Transient,
    /// Our view is stale: read the object again, decide again.
    Reevaluate,
    /// Permissions or admission forbid it: slow retry and alarm, the state is not at fault.
    Configuration,
    /// The namespace does not exist: put it in place first.
    NamespaceMissing,
    /// The namespace is being deleted: wait until it is gone.
    NamespaceTerminating,
    /// The API server does not know this kind (no CRD): wait for it to appear.
    KindMissing,
    /// Our own credentials were not accepted: re-read the token, then alarm.
    Unauthenticated,
}

impl RefusalClass {
    /// Low-cardinality name for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Transient => "transient",
            Self::Reevaluate => "reevaluate",
            Self::Configuration => "configuration",
            Self::NamespaceMissing => "namespace_missing",
            Self::NamespaceTerminating => "namespace_terminating",
            Self::KindMissing => "kind_missing",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}

/// A request the API server did not fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How to go on.
    pub class: RefusalClass,
    /// HTTP status, 0 when no answer came.
    pub code: u16,
    /// The server's words, cut to a sane length; never a request body.
    pub message: String,
    /// How long the server asked to wait, if it did.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Whether krane lacks the permission, as opposed to being refused for what it wants (D38b).
    pub fn is_forbidden(&self) -> bool {
        self.class == RefusalClass::Configuration && self.code == 403
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            0 => write!(f, "no answer from the API server: {}", self.message),
            code => write!(f, "the API server answered {code}: {}", self.message),
        }
    }
}

impl std::error::Error for Refusal {}
