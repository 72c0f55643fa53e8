//! Which class a refusal is of.

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
pub fn classify(status: &ApiStatus) -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code: status.code,
        message: status.message.clone(),
        retry_after: status.retry_after,
    }
}
