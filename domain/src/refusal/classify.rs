//! Which class a refusal is of.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{Refusal, RefusalClass};

/// What an API server answered instead of what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiStatus {
    /// HTTP status; 0 when no answer came.
    pub code: u16,
    /// `reason` of the Status body, empty if absent.
    pub reason: String,
    /// `message` of the Status body, or the text of the error.
    pub message: String,
    /// `details.causes` of the Status body.
    pub causes: Vec<Cause>,
    /// Whether the body was a JSON Status. `404 page not found` of an absent API is not.
    pub is_json: bool,
    /// `details.kind` of the Status body, empty if absent.
    pub details_kind: String,
    /// `details.retryAfterSeconds` or the header `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// One entry of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// `reason` of the cause, empty if absent.
    pub reason: String,
    /// `field` of the cause, empty if absent.
    pub field: String,
    /// `message` of the cause, empty if absent.
    pub message: String,
}

/// What a refusal means for the work that met it.
///
/// Follows the measured table of codes, reasons and causes. What it does not list is transient for
/// 5xx and for missing answers, and a matter of configuration otherwise: no unknown refusal may
/// quarantine a state.
pub fn classify(status: &ApiStatus) -> Refusal {
    Refusal {
        class: class(status),
        code: status.code,
        message: readable(&status.message),
        retry_after: status.retry_after,
    }
}

fn class(status: &ApiStatus) -> RefusalClass {
    if is_admission(&status.message) {
        return RefusalClass::Configuration;
    }
    match status.code {
        400 | 413 => RefusalClass::Permanent,
        401 => RefusalClass::Unauthenticated,
        403 => forbidden(status),
        404 => not_found(status),
        409 if has_cause(status, "FieldManagerConflict") => RefusalClass::Configuration,
        409 | 410 => RefusalClass::Reevaluate,
        422 => unprocessable(status),
        500 if is_permanent_inside(status) => RefusalClass::Permanent,
        504 if has_cause(status, "ResourceVersionTooLarge") => RefusalClass::Reevaluate,
        0..400 | 408 | 429 | 500.. => RefusalClass::Transient,
        402..500 => RefusalClass::Configuration,
    }
}

fn forbidden(status: &ApiStatus) -> RefusalClass {
    let message = &status.message;
    if has_cause(status, "NamespaceTerminating") {
        RefusalClass::NamespaceTerminating
    } else if message.contains("custom resource definition is terminating")
        || message.contains("exceeded quota")
    {
        RefusalClass::Transient
    } else {
        RefusalClass::Configuration
    }
}

fn not_found(status: &ApiStatus) -> RefusalClass {
    if !status.is_json
        || status
            .message
            .contains("could not find the requested resource")
    {
        RefusalClass::KindMissing
    } else if status.details_kind == "namespaces" {
        RefusalClass::NamespaceMissing
    } else {
        RefusalClass::Reevaluate
    }
}

/// Our view of the object is stale when its uid does not fit or a JSON patch test failed.
fn unprocessable(status: &ApiStatus) -> RefusalClass {
    let is_other_object = status
        .causes
        .iter()
        .any(|cause| cause.field == "metadata.uid")
        || (status.causes.is_empty() && status.message.contains("metadata.uid:"));
    let is_failed_patch = status
        .message
        .contains("the server rejected our request due to an error in our request");
    if is_other_object || is_failed_patch {
        RefusalClass::Reevaluate
    } else {
        RefusalClass::Permanent
    }
}

/// Schema errors of server-side apply and objects too big for etcd come as 500 without a reason.
fn is_permanent_inside(status: &ApiStatus) -> bool {
    let message = &status.message;
    status.reason.is_empty()
        && (message.starts_with("failed to create typed patch object")
            || message.starts_with("failed to convert new object")
            || message.contains("etcdserver: request is too large")
            || (message.contains("ResourceExhausted") && message.contains("larger than max")))
}

/// An admission webhook or policy may answer with any code; the state is not at fault (D11b).
fn is_admission(message: &str) -> bool {
    (message.contains("admission webhook \"") && message.contains("denied the request"))
        || (message.contains("ValidatingAdmissionPolicy '") && message.contains("denied request"))
}

fn has_cause(status: &ApiStatus, reason: &str) -> bool {
    status.causes.iter().any(|cause| cause.reason == reason)
}

/// Longest message kept, in characters.
const MESSAGE_LENGTH: usize = 512;

/// One line of bounded length, fit for a log and a page.
fn readable(message: &str) -> String {
    let mut characters = message.trim().chars();
    let line: String = characters
        .by_ref()
        .take(MESSAGE_LENGTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if characters.next().is_some() {
        line + "…"
    } else {
        line
    }
}
