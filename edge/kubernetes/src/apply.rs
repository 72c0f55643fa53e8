//! The body of a server-side apply. Pure.

use bytes::Bytes;
use krane_domain::object::Rendered;
use krane_domain::refusal::{Refusal, RefusalClass};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::reply::json_problem;

/// Largest request body the API server reads, in bytes.
pub(super) const LARGEST_BODY: usize = 3 << 20;

/// What belongs to the API server: with managedFields an apply is refused, with the resourceVersion
/// of some read object a no-op becomes a conflict, and a status is ignored or refused.
const SERVERS_OWN: [&str; 5] = [
    "managedFields",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "uid",
];

/// The bytes to send. With `uid` the apply can only meet the object of that uid, and made for a
/// version only that version.
pub(super) fn body(object: &Rendered, uid: Option<&str>) -> Result<Bytes, Refusal> {
    debug_assert!(
        is_free_of_server_fields(&object.body),
        "{} must be rendered",
        object.reference
    );
    let bytes = serde_json::to_vec(&Manifest {
        body: &object.body,
        at: At {
            uid,
            version: object.made_for,
        },
    })
    .map_err(|error| refused(object, &json_problem(&error)))?;
    if bytes.len() > LARGEST_BODY {
        let size = bytes.len();
        let problem = format!(
            "its manifest of {size} bytes is over the API server's limit of {LARGEST_BODY}; make \
             its variables or its command smaller"
        );
        return Err(refused(object, &problem));
    }
    Ok(Bytes::from(bytes))
}

fn refused(object: &Rendered, problem: &str) -> Refusal {
    Refusal {
        class: RefusalClass::Permanent,
        code: 0,
        message: format!("{} was not sent: {problem}", object.reference),
        retry_after: None,
    }
}

fn is_free_of_server_fields(body: &Value) -> bool {
    body.get("status").is_none()
        && SERVERS_OWN
            .iter()
            .all(|key| body["metadata"].get(key).is_none())
}

/// What an apply may meet.
#[derive(Clone, Copy)]
struct At<'a> {
    uid: Option<&'a str>,
    version: Option<u64>,
}

/// A rendered object without the server's own fields and with what it may meet, written without a
/// copy.
struct Manifest<'a> {
    body: &'a Value,
    at: At<'a>,
}

impl Serialize for Manifest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let empty = Map::new();
        let fields = self.body.as_object().unwrap_or(&empty);
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in fields.iter().filter(|(key, _)| *key != "status") {
            match value.as_object() {
                Some(fields) if key == "metadata" => {
                    map.serialize_entry(
                        key,
                        &Meta {
                            fields,
                            at: self.at,
                        },
                    )?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

struct Meta<'a> {
    fields: &'a Map<String, Value>,
    at: At<'a>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self
            .fields
            .iter()
            .filter(|(key, _)| !SERVERS_OWN.contains(&key.as_str()))
        {
            map.serialize_entry(key, value)?;
        }
        if let Some(uid) = self.at.uid {
            map.serialize_entry("uid", uid)?;
        }
        if let Some(version) = self.at.version {
            map.serialize_entry("resourceVersion", &version.to_string())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use krane_domain::object::{ObjectRef, Resource};
    use serde_json::json;

    use super::*;

    fn rendered(body: Value) -> Rendered {
        Rendered::new(ObjectRef::new(Resource::ReplicaSet, "ws-1", "app-1"), body)
    }

    fn sent(object: &Rendered, uid: Option<&str>) -> Value {
        serde_json::from_slice(&body(object, uid).unwrap()).unwrap()
    }

    /// helm/helm PR #31361, kubernetes/kubernetes PR #81453 (B24): nothing of what was read goes out.
    #[test]
    fn the_uid_is_added_to_what_was_rendered_and_nothing_else() {
        let manifest = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "app-1", "labels": {"a": "b"}}, "spec": {"replicas": 0},
        });
        let object = rendered(manifest.clone());
        assert_eq!(sent(&object, None), manifest);
        let mut expected = manifest;
        expected["metadata"]["uid"] = json!("u-1");
        assert_eq!(sent(&object, Some("u-1")), expected);
    }

    #[test]
    fn what_was_made_for_a_version_meets_no_other() {
        let mut object = rendered(json!({"metadata": {"name": "app-1"}}));
        object.made_for = Some(41);
        assert_eq!(
            sent(&object, Some("u-1")),
            json!({"metadata": {"name": "app-1", "uid": "u-1", "resourceVersion": "41"}})
        );
    }

    /// helm/helm PR #31361, kubernetes/kubernetes PR #81453 (B24): an apply made from an object that
    /// was read.
    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "must be rendered"))]
    fn an_object_that_was_read_never_goes_out_with_the_servers_fields() {
        let object = rendered(json!({
            "metadata": {"name": "app-1", "uid": "u-0", "resourceVersion": "7", "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}]},
            "status": {"replicas": 1},
        }));
        assert_eq!(
            sent(&object, Some("u-1")),
            json!({"metadata": {"name": "app-1", "uid": "u-1"}})
        );
    }

    #[test]
    fn a_body_over_the_servers_limit_is_refused_here_with_its_size() {
        let object = rendered(json!({"metadata": {}, "spec": "x".repeat(LARGEST_BODY)}));
        let refusal = body(&object, None).unwrap_err();
        assert_eq!(refusal.class, RefusalClass::Permanent);
        assert!(
            refusal
                .message
                .contains(&format!("{} bytes", LARGEST_BODY + 25)),
            "{}",
            refusal.message
        );
    }
}
