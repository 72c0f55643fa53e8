//! Why a call is not done.

use std::fmt;

use crate::backlog::{Trouble, TroubleKind};
use crate::invalid::Invalid;

/// Why a call is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct CallFailure {
    /// What the caller can make of it.
    pub kind: CallFailureKind,
    /// What is wrong and what to do about it. Never secret content.
    pub message: String,
}

/// What a caller can make of a failure; the names are those of gRPC codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallFailureKind {
    /// The call can never be done as it is.
    InvalidArgument,
    /// The object is not the scheduler's to change, or a person has to act first.
    FailedPrecondition,
    /// The API server forbids it.
    PermissionDenied,
    /// Somebody else wrote, or called, at the same time.
    Aborted,
    /// It was not done in time; what was taken in is still wanted.
    DeadlineExceeded,
    /// Another try may succeed: this process does not write, or something that it needs is not
    /// well.
    Unavailable,
    /// A defect of krane.
    Internal,
}

impl CallFailureKind {
    /// The gRPC code's name in snake case: a closed set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::FailedPrecondition => "failed_precondition",
            Self::PermissionDenied => "permission_denied",
            Self::Aborted => "aborted",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for CallFailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CallFailure {
    /// A failure of this kind.
    pub fn new(kind: CallFailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What the trouble of its object means for a call; nothing while it only has to wait.
    pub fn of_trouble(trouble: &Trouble) -> Option<Self> {
        let kind = match (trouble.kind, trouble.code) {
            (TroubleKind::Waiting, _) => return None,
            (_, Some(403)) => CallFailureKind::PermissionDenied,
            (_, Some(409)) => CallFailureKind::Aborted,
            (TroubleKind::Quarantined, Some(_)) => CallFailureKind::InvalidArgument,
            (TroubleKind::Quarantined, None) if trouble.field.is_some() => {
                CallFailureKind::InvalidArgument
            }
            // Its lane broke, or took too long.
            (TroubleKind::Quarantined, None) => CallFailureKind::Internal,
            (TroubleKind::Misconfigured | TroubleKind::Held, _) => {
                CallFailureKind::FailedPrecondition
            }
            (TroubleKind::Transient, _) => CallFailureKind::Unavailable,
        };
        Some(Self::new(kind, trouble.to_string()))
    }
}

impl From<Invalid> for CallFailure {
    fn from(invalid: Invalid) -> Self {
        Self::new(CallFailureKind::InvalidArgument, invalid.to_string())
    }
}
