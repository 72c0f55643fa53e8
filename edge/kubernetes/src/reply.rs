//! Answers of the API server, and what is wrong with them. Pure.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use krane_domain::refusal::{ApiStatus, Cause, Refusal, RefusalClass, classify};
use serde::Deserialize;

use krane_domain::words::{self, LONGEST_MESSAGE};

/// Longest wait a server can impose; more is taken for a mistake.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(10);

/// A complete answer.
#[derive(Clone)]
pub struct Reply {
    /// HTTP status.
    pub code: u16,
    /// Content type, empty if absent.
    pub content_type: String,
    /// The header `Retry-After`, if it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The header `Date`.
    pub date: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

impl fmt::Debug for Reply {
    /// Leaves out the body: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

/// The parts of a `v1/Status` that decide; every field may be absent or of another type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    code: Option<u16>,
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    name: String,
    kind: String,
    causes: Option<Vec<StatusCause>>,
    #[serde(rename = "retryAfterSeconds")]
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: String,
    field: String,
    message: String,
}

impl Reply {
    /// An answer of these headers and this body.
    pub(super) fn new(code: u16, headers: &HeaderMap, body: Bytes) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let seconds = text(RETRY_AFTER).and_then(|value| value.trim().parse().ok());
        Self {
            code,
            content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after: seconds.map(wait),
            date: text(DATE).map(str::to_owned),
            body,
        }
    }

    /// Whether the server did what was asked.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether the answer says that the object of this name does not exist.
    ///
    /// Strict, because a create follows: an absent API, or a 404 that a proxy made up, says
    /// nothing about the object.
    pub fn is_absent(&self, name: &str) -> bool {
        let status: Option<Status> = serde_json::from_slice(&self.body).ok();
        let Some(status) = status.filter(|status| status.kind == "Status") else {
            return false;
        };
        let details = status.details.unwrap_or_default();
        self.code == 404
            && status.reason == "NotFound"
            && (details.name == name || details.kind == "namespaces")
    }

    /// Whether a delete met another object than the one meant: the name was given away since.
    pub fn is_uid_conflict(&self) -> bool {
        let status = self.status();
        let text = &status.message;
        self.code == 409
            && (text.contains("UID in the precondition") || text.contains("UID in precondition"))
    }

    /// What the answer means when it is no success.
    pub fn refusal(&self) -> Refusal {
        classify(&self.status())
    }

    /// Whether a watch from this resource version cannot start and a new list is needed.
    pub(super) fn is_version_unusable(&self) -> bool {
        is_version_unusable(&self.status())
    }

    fn status(&self) -> ApiStatus {
        let mut status = status_of(&self.body).unwrap_or_else(|| ApiStatus {
            message: self.plain_text(),
            ..ApiStatus::default()
        });
        status.code = self.code;
        status.retry_after = self.retry_after.or(status.retry_after);
        status
    }

    /// Only an error page or `404 page not found` ever gets here, and only its first line is kept.
    fn plain_text(&self) -> String {
        let start = &self.body[..self.body.len().min(LONGEST_MESSAGE)];
        let text = String::from_utf8_lossy(start);
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        match (line.is_empty(), self.content_type.as_str()) {
            (true, "") => "an empty answer".to_owned(),
            (true, kind) => format!("an empty answer of type {kind}"),
            (false, _) => line.to_owned(),
        }
    }
}

/// Reads a JSON `Status`; anything else is `None`.
pub(super) fn status_of(json: &[u8]) -> Option<ApiStatus> {
    let status: Status = serde_json::from_slice(json).ok()?;
    if status.kind != "Status" {
        return None;
    }
    let details = status.details.unwrap_or_default();
    let causes = details.causes.unwrap_or_default();
    Some(ApiStatus {
        code: status.code.unwrap_or_default(),
        reason: status.reason,
        message: status.message,
        causes: causes
            .into_iter()
            .map(|cause| Cause {
                reason: cause.reason,
                field: cause.field,
                message: cause.message,
            })
            .collect(),
        is_json: true,
        details_kind: details.kind,
        retry_after: details.retry_after_seconds.map(wait),
    })
}

/// Whether a resource version was refused in a way that only a new list heals: too old, or newer
/// than anything the server has (etcd restored from a backup).
pub(super) fn is_version_unusable(status: &ApiStatus) -> bool {
    status.code == 410
        || matches!(status.reason.as_str(), "Expired" | "Gone")
        || status
            .causes
            .iter()
            .any(|cause| cause.reason == "ResourceVersionTooLarge")
}

/// An answer that came, but cannot be used. `problem` never quotes the content.
pub(super) fn unreadable(code: u16, problem: impl Into<String>) -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code,
        message: problem.into(),
        retry_after: None,
    }
}

/// Where JSON stopped making sense; serde's own text may quote what it read.
pub(super) fn json_problem(error: &serde_json::Error) -> String {
    let problem = if error.is_eof() {
        "ends too early"
    } else {
        "is not as expected"
    };
    format!(
        "the JSON {problem} at line {} column {}",
        error.line(),
        error.column()
    )
}

/// An error with its causes, without the name of its own type that kube adds to them.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    words::chain(error).replace("ServiceError: ", "")
}

fn wait(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER)
}
