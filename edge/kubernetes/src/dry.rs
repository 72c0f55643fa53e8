//! Answers to dry runs.

use krane_domain::object::{LiveObject, ObjectRef};
use krane_domain::refusal::Refusal;
use serde_json::{Value, json};

use super::reply::{Reply, json_problem, unreadable};

/// The object as it would be. One that is not there has no version, and gets the least one, so that
/// the first real one replaces it.
pub(super) fn decoded(mut reply: Reply, object: &ObjectRef) -> Result<LiveObject, Refusal> {
    let mut body: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| unreadable(reply.code, json_problem(&error)))?;
    let version = &mut body["metadata"]["resourceVersion"];
    if version.as_str().is_none_or(str::is_empty) {
        *version = json!("1");
    }
    reply.body = body.to_string().into();
    super::decoded(&reply, object)
}
