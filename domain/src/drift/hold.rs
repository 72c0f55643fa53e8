//! The annotation by which a person tells krane to keep its hands off an object (D22c).

use serde_json::Value;

use crate::labels;
use crate::object::Resource;
use crate::rfc3339::unix_seconds;

/// The longest hold that is obeyed, in seconds.
const LONGEST: u64 = 24 * 60 * 60;

/// Until when an object is on hold, in seconds since the Unix epoch; `Err` says why its annotation
/// is not obeyed.
pub(super) fn read(resource: Resource, live: &Value, now: u64) -> Result<Option<u64>, String> {
    let annotations = live
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"));
    let Some(text) = annotations.and_then(|all| all.get(labels::HOLD_ANNOTATION)) else {
        return Ok(None);
    };
    if resource == Resource::CiliumNetworkPolicy {
        return Err("policies cannot be held".to_owned());
    }
    match text.as_str() {
        Some(text) => hold_until(text, now),
        None => Err(no_time(text)),
    }
}

/// Until when a hold with this text is obeyed at `now`, both in seconds since the Unix epoch;
/// nothing when it is over.
///
/// # Errors
///
/// Why it is not obeyed.
pub fn hold_until(text: &str, now: u64) -> Result<Option<u64>, String> {
    let value = || Value::from(text);
    let until = unix_seconds(text).ok_or_else(|| no_time(&value()))?;
    if until <= now {
        return Ok(None);
    }
    if until - now > LONGEST {
        return Err(format!("{} is more than 24 hours ahead", shown(&value())));
    }
    Ok(Some(until))
}

fn no_time(text: &Value) -> String {
    format!(
        "{} is not an RFC 3339 time like 2026-01-31T12:00:00Z",
        shown(text)
    )
}

fn shown(text: &Value) -> String {
    text.to_string().chars().take(60).collect()
}
