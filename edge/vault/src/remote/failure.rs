//! What went wrong with a call, and whether it is the vault's own word.
//!
//! | what happened | code | kind | why |
//! |---|---|---|---|
//! | no connection, broken connection, broken answer | `unavailable` | unavailable | nobody was heard |
//! | no complete answer in time | `deadline_exceeded` | unavailable | the same |
//! | the vault says `unavailable`, `resource_exhausted`, `deadline_exceeded`, `canceled`, `aborted` | its code | unavailable | it is stopping, busy or slow: later may be better |
//! | the vault says `unauthenticated`, `permission_denied` | its code | refused | the token is wrong, until somebody changes it |
//! | the vault says `invalid_argument`, `not_found`, `failed_precondition`, `out_of_range`, `already_exists`, `data_loss` | its code | refused | the value or the key ring is wrong; the next pod's may be right |
//! | the vault says `internal`, `unknown` | its code | refused | `DecryptBulk` answers so when *one* value cannot be decrypted: one tenant's value must not open a breaker for all |
//! | the vault says `unimplemented` | its code | refused | for `DecryptBulk` the values are asked for one by one; a vault without `Decrypt` is none |
//! | HTTP 401, 403 without a Connect error | by status | refused | a gateway in front refuses the token |
//! | any other HTTP status without a Connect error | by status | unavailable | not the vault's word: a proxy without a vault behind it |
//! | HTTP 200 that is no protobuf | `unknown` | unavailable | the same |
//! | protobuf that does not decode, other names than asked for | `internal` | refused | the vault's word, and it may depend on what was asked |
//! | an answer over the limit | `out_of_range` | refused | the same |
//!
//! Of an error the code is kept and nothing else: a message may repeat a ciphertext or a plaintext.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use http_body_util::LengthLimitError;
use hyper_util::client::legacy;
use krane_domain::words::described;
use krane_ports::{VaultFailure, VaultFailureKind};
use krane_proto::codes;
use serde::Deserialize;
use tonic::Code;

use super::super::{failure, shown};

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    kind: VaultFailureKind,
    code: Code,
    words: String,
}

/// The only part of a Connect error that is read.
#[derive(Deserialize)]
struct ConnectError {
    code: String,
}

impl Failure {
    fn unavailable(code: Code, words: impl Into<String>) -> Self {
        Self {
            kind: VaultFailureKind::Unavailable,
            code,
            words: words.into(),
        }
    }

    fn refused(code: Code, words: impl Into<String>) -> Self {
        Self {
            kind: VaultFailureKind::Refused,
            code,
            words: words.into(),
        }
    }

    /// There was no answer.
    pub(super) fn lost(error: &legacy::Error) -> Self {
        let words = if error.is_connect() {
            "the vault cannot be reached: check vault.url, DNS and network policies"
        } else {
            "the connection to the vault broke"
        };
        // Errors of connections hold addresses and names of certificates, never a body.
        let words = described(words, error.source());
        Self::unavailable(Code::Unavailable, words)
    }

    /// The answer ended too early, or does not end.
    pub(super) fn broken_answer(error: &(dyn Error + Send + Sync + 'static)) -> Self {
        if error.is::<LengthLimitError>() {
            Self::refused(Code::OutOfRange, "the vault's answer is larger than any")
        } else {
            Self::unavailable(Code::Unavailable, "the vault's answer broke off")
        }
    }

    pub(super) fn timed_out(limit: Duration) -> Self {
        let words =
            format!("no complete answer within {limit:?}: the vault hangs or is overloaded");
        Self::unavailable(Code::DeadlineExceeded, words)
    }

    /// An answer that is not HTTP 200.
    pub(super) fn of_answer(status: StatusCode, body: Option<&Vec<u8>>) -> Self {
        let said = body
            // Serde would read an array as well.
            .filter(|body| body.trim_ascii_start().starts_with(b"{"))
            .and_then(|body| serde_json::from_slice::<ConnectError>(body).ok())
            .and_then(|error| codes::of_error(&error.code));
        match said {
            Some(code) => Self::of_vault(code),
            None => Self::of_stranger(status),
        }
    }

    fn of_vault(code: Code) -> Self {
        let name = codes::name(code);
        match code {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Unavailable => {
                Self::unavailable(code, format!("the vault says that it cannot now ({name})"))
            }
            Code::Unauthenticated | Code::PermissionDenied => Self::refused(
                code,
                format!("the vault does not take the token ({name}): check vault.token"),
            ),
            Code::Ok
            | Code::Unknown
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss => Self::refused(code, format!("the vault refuses ({name})")),
        }
    }

    fn of_stranger(status: StatusCode) -> Self {
        let (code, number) = (codes::of_http(status), status.as_u16());
        if matches!(code, Code::Unauthenticated | Code::PermissionDenied) {
            let words = format!("HTTP {number} in front of the vault: check vault.token");
            return Self::refused(code, words);
        }
        let words = format!(
            "HTTP {number} is no answer of a vault: check vault.url, and every proxy on the way"
        );
        Self::unavailable(code, words)
    }

    /// HTTP 200, and no protobuf.
    pub(super) fn no_vault() -> Self {
        Self::unavailable(
            Code::Unknown,
            "what answers is no vault: check vault.url, and every proxy on the way",
        )
    }

    pub(super) fn not_well() -> Self {
        Self::unavailable(Code::Unknown, "the vault does not say that it is well")
    }

    pub(super) fn undecodable() -> Self {
        Self::refused(Code::Internal, "the vault's answer does not decode")
    }

    pub(super) fn other_names() -> Self {
        Self::refused(
            Code::Internal,
            "the vault answered other values than it was asked for",
        )
    }

    pub(super) fn no_address() -> Self {
        Self::refused(Code::Internal, "vault.url makes no address with a path")
    }

    pub(super) fn unusable_token() -> Self {
        Self::refused(
            Code::Unauthenticated,
            "vault.token holds a character that no HTTP header can carry: replace it",
        )
    }

    /// The same, about one value.
    pub(super) fn about(mut self, name: &str) -> Self {
        if self.kind == VaultFailureKind::Refused {
            self.words = format!("the value of {}: {}", shown(name), self.words);
        }
        self
    }

    /// Whether the server does not know the method.
    pub(super) fn is_unimplemented(&self) -> bool {
        self.code == Code::Unimplemented
    }
}

impl From<Failure> for VaultFailure {
    fn from(of: Failure) -> Self {
        failure(of.kind, of.code, &of.words)
    }
}

#[cfg(test)]
mod tests;
