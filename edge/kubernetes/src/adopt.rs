//! Taking over what others own: one read of the managed fields, one JSON patch that changes
//! nothing else (D11a).

use bytes::Bytes;
use krane_domain::drift;
use krane_domain::labels::MANAGER;
use krane_domain::object::{LiveObject, ObjectRef};
use krane_domain::refusal::{Refusal, RefusalClass};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::{json_problem, unreadable};
use super::request::{object_path, push_query};
use super::{Call, KubeCalls, Verb, decoded, refusal};

const JSON_PATCH: &str = "application/json-patch+json";

#[derive(Deserialize)]
struct Owned {
    metadata: OwnedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnedMetadata {
    uid: String,
    resource_version: String,
    #[serde(default)]
    managed_fields: Vec<Value>,
}

pub(super) async fn adopt(
    calls: &KubeCalls,
    object: &ObjectRef,
    uid: &str,
    dry_run: &str,
) -> Result<LiveObject, Refusal> {
    let mut target = object_path(object)?;
    let plural = object.resource.plural();
    let reply = calls
        .run(&Call::new(Verb::Metadata, plural, target.clone()))
        .await?;
    if !reply.is_success() {
        return Err(refusal(&reply, object));
    }
    let owned: Owned = serde_json::from_slice(&reply.body)
        .map_err(|error| unreadable(reply.code, format!("{object}: {}", json_problem(&error))))?;
    let metadata = owned.metadata;
    let adopted = drift::adopted(object.resource, &metadata.managed_fields);
    let Some(managed_fields) = adopted.filter(|_| metadata.uid == uid) else {
        return Err(outdated(object));
    };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
        {"op": "replace", "path": "/metadata/managedFields", "value": managed_fields},
    ]);
    push_query(
        &mut target,
        &[("fieldManager", MANAGER), ("dryRun", dry_run)],
    );
    let call = Call::new(Verb::Patch, plural, target)
        .with_body(JSON_PATCH, Bytes::from(patch.to_string()));
    let reply = calls.run(&call).await?;
    if reply.is_success() {
        decoded(&reply, object)
    } else {
        Err(refusal(&reply, object))
    }
}

/// The view that called for it was not the latest.
fn outdated(object: &ObjectRef) -> Refusal {
    Refusal {
        class: RefusalClass::Reevaluate,
        code: 0,
        message: format!("{object} has changed since it was looked at"),
        retry_after: None,
    }
}
