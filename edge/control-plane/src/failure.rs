//! What went wrong with a call or a stream, in the port's words.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::header::InvalidHeaderValue;
use krane_domain::words::{chain, cut, described};
use krane_ports::{RpcFailure, RpcFailureKind, StreamEnd};
use krane_proto::codes;
use secrecy::{ExposeSecret as _, SecretString};
use tonic::{Code, Status};

use super::dial::DialError;

/// A call or a stream that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub code: Code,
    pub kind: RpcFailureKind,
    pub message: String,
    /// A message over the limit: it will come again and never fit.
    pub is_oversize: bool,
    pub second_try: SecondTry,
}

/// Whether the same call may go out again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecondTry {
    /// It never left: even a stream may.
    NeverSent,
    /// Its connection broke under it. Everything krane asks or tells may be said twice.
    ConnectionLost,
    /// Nothing says that it would go better.
    Pointless,
}

impl Failure {
    /// From a status, which is the server's own word or, if not `answered`, made up on our side.
    pub(super) fn of(status: &Status, answered: bool, token: &SecretString) -> Self {
        let is_oversize = !answered
            && status.code() == Code::OutOfRange
            && status.message().contains("message length too large");
        let kind = if answered || is_oversize {
            RpcFailureKind::Answered
        } else {
            RpcFailureKind::Transport
        };
        Self {
            code: match (status.code(), status.source()) {
                // A connection that broke under it is nothing that nobody knows.
                (Code::Unknown, Some(_)) if !answered => Code::Unavailable,
                (code, _) => code,
            },
            kind,
            message: presentable(described(status.message(), status.source()), token),
            is_oversize,
            second_try: if answered {
                SecondTry::Pointless
            } else {
                second_try(status)
            },
        }
    }

    pub(super) fn dial(error: &Arc<DialError>) -> Self {
        Self::transport(Code::Unavailable, chain(&**error))
    }

    pub(super) fn timed_out(after: Duration) -> Self {
        let message = format!(
            "no complete answer within {after:?}: the control plane hangs or is overloaded"
        );
        Self::transport(Code::DeadlineExceeded, message)
    }

    pub(super) fn unusable_token(_: &InvalidHeaderValue) -> Self {
        let message = "control.token holds a character that no HTTP header can carry: replace it";
        Self::transport(Code::Unauthenticated, message.to_owned())
    }

    fn transport(code: Code, message: String) -> Self {
        Self {
            code,
            kind: RpcFailureKind::Transport,
            message: cut(message),
            is_oversize: false,
            second_try: SecondTry::Pointless,
        }
    }
}

impl From<Failure> for RpcFailure {
    fn from(failure: Failure) -> Self {
        Self {
            kind: failure.kind,
            code: codes::name(failure.code),
            message: failure.message,
        }
    }
}

impl From<Failure> for StreamEnd {
    fn from(failure: Failure) -> Self {
        Self {
            code: codes::name(failure.code),
            message: failure.message,
            is_oversize: failure.is_oversize,
        }
    }
}

fn second_try(status: &Status) -> SecondTry {
    let mut causes = std::iter::successors(status.source(), |&cause| cause.source());
    causes
        .find_map(|cause| {
            if let Some(error) = cause.downcast_ref::<hyper::Error>() {
                if error.is_canceled() || error.is_closed() {
                    return Some(SecondTry::NeverSent);
                }
                return error.is_timeout().then_some(SecondTry::ConnectionLost);
            }
            if cause.is::<std::io::Error>() {
                return Some(SecondTry::ConnectionLost);
            }
            let error = cause.downcast_ref::<h2::Error>()?;
            if error.reason() == Some(h2::Reason::REFUSED_STREAM) {
                Some(SecondTry::NeverSent)
            } else {
                (error.is_go_away() || error.is_io()).then_some(SecondTry::ConnectionLost)
            }
        })
        .unwrap_or(SecondTry::Pointless)
}

/// What a server says goes into logs: one line, not too long, and not our token sent back.
fn presentable(text: String, token: &SecretString) -> String {
    let token = token.expose_secret();
    let text = if token.is_empty() {
        text
    } else {
        text.replace(token, "<token>")
    };
    cut(text.replace(char::is_control, " "))
}
