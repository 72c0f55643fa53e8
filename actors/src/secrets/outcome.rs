//! How a request for secrets ended: precise for operators, the same few codes for callers.

use krane_domain::secrets::Denial;
use krane_ports::Refused;

/// How a request ended, for log and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The pod got its secrets.
    Granted,
    /// It proved nothing.
    Denied(Denial),
    /// It, its sender or everybody asks too often.
    Limited,
    /// The API server did not say who asks.
    ClusterUnavailable,
    /// The vault did not answer, or not with all of it.
    VaultUnavailable,
    /// The vault does not decrypt these values.
    VaultRefused,
    /// The blob is no blob.
    MalformedBlob,
    /// The answer was not there in time.
    TimedOut,
    /// The caller did not wait for the answer.
    Abandoned,
    /// A defect of krane.
    Panicked,
}

impl Outcome {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let denied = Denial::ALL.into_iter().map(Self::Denied);
        denied.chain([
            Self::Granted,
            Self::Limited,
            Self::ClusterUnavailable,
            Self::VaultUnavailable,
            Self::VaultRefused,
            Self::MalformedBlob,
            Self::TimedOut,
            Self::Abandoned,
            Self::Panicked,
        ])
    }

    /// Value of the metric label `result`: a closed set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Denied(denial) => denial.name(),
            Self::Limited => "limited",
            Self::ClusterUnavailable => "cluster_unavailable",
            Self::VaultUnavailable => "vault_unavailable",
            Self::VaultRefused => "vault_refused",
            Self::MalformedBlob => "malformed_blob",
            Self::TimedOut => "timed_out",
            Self::Abandoned => "abandoned",
            Self::Panicked => "panicked",
        }
    }

    /// Why the request proved nothing, if that is how it ended.
    pub const fn denial(self) -> Option<Denial> {
        if let Self::Denied(denial) = self {
            Some(denial)
        } else {
            None
        }
    }

    /// What the caller is told; nothing when it got its secrets.
    pub const fn refused(self) -> Option<Refused> {
        Some(match self {
            Self::Granted => return None,
            Self::Denied(_) => Refused::Unauthenticated,
            Self::Limited => Refused::ResourceExhausted,
            // An operator can mend what the vault refuses: its token, its keys.
            Self::ClusterUnavailable
            | Self::VaultUnavailable
            | Self::VaultRefused
            | Self::TimedOut
            | Self::Abandoned
            | Self::Panicked => Refused::Unavailable,
            Self::MalformedBlob => Refused::Internal,
        })
    }
}
