//! From the JSON of the API server to what krane keeps of an object.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{LiveObject, ObjectRef, Resource};
use crate::canonical;

/// An object of the API server that could not be understood. Holds nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// The kind it was read as.
    pub resource: Resource,
    /// `namespace/name` as far as readable, else empty.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Undecodable {
    /// Only the place of a syntax error: its text may quote the content.
    pub(crate) fn syntax(resource: Resource, error: &serde_json::Error) -> Self {
        Self {
            resource,
            name: String::new(),
            reason: format!(
                "not readable at line {} column {}",
                error.line(),
                error.column()
            ),
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.resource.kind();
        match self.name.as_str() {
            "" => write!(f, "{kind} of unknown name: {}", self.reason),
            name => write!(f, "{kind} {name}: {}", self.reason),
        }
    }
}

impl std::error::Error for Undecodable {}

/// What is kept of `metadata`, as it came.
const METADATA: [&str; 8] = [
    "annotations",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
];

/// What is kept of `status`: a few numbers for reports and for whoever looks at the object.
const STATUS: [&str; 7] = [
    "availableReplicas",
    "fullyLabeledReplicas",
    "observedGeneration",
    "readyReplicas",
    "replicas",
    "unavailableReplicas",
    "updatedReplicas",
];

/// A copy of the whole object that kubectl leaves behind: never compared, may hold secrets.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl LiveObject {
    /// What krane keeps of an object, from its JSON text.
    pub fn from_slice(resource: Resource, json: &[u8]) -> Result<Self, Undecodable> {
        let value =
            serde_json::from_slice(json).map_err(|error| Undecodable::syntax(resource, &error))?;
        Self::from_json(resource, value)
    }

    /// What krane keeps of an object, from its JSON tree.
    ///
    /// Values of a Secret are kept as hashes: enough to compare, nothing to leak.
    pub fn from_json(resource: Resource, value: Value) -> Result<Self, Undecodable> {
        let mut object = into_map(value);
        let mut metadata = into_map(object.remove("metadata").unwrap_or_default());
        let status = into_map(object.remove("status").unwrap_or_default());
        object.remove("apiVersion");
        object.remove("kind");

        let text = |key: &str| {
            metadata
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (namespace, name) = (text("namespace").to_owned(), text("name").to_owned());
        let uid: Arc<str> = text("uid").into();
        let version = text("resourceVersion").parse::<u64>();
        let refused = |reason: &str| Undecodable {
            resource,
            name: format!("{namespace}/{name}"),
            reason: reason.to_owned(),
        };
        if name.is_empty() {
            return Err(refused("no name"));
        }
        if namespace.is_empty() && resource.is_namespaced() {
            return Err(refused("no namespace"));
        }
        if uid.is_empty() {
            return Err(refused("no uid"));
        }
        let resource_version = version.map_err(|_| refused("no resourceVersion"))?;
        let reference = ObjectRef::new(resource, namespace.as_str(), name.as_str());

        let managers = managers(metadata.remove("managedFields").unwrap_or_default());
        metadata.retain(|key, _| METADATA.contains(&key.as_str()));
        let generation = metadata.remove("generation");
        metadata.insert("uid".to_owned(), Value::from(&*uid));
        metadata.insert("managedFields".to_owned(), Value::Array(managers));
        let labels = string_map(metadata.get("labels"));
        let is_terminating = metadata
            .get("deletionTimestamp")
            .is_some_and(Value::is_string);
        object.insert("metadata".to_owned(), Value::Object(metadata));

        let mut content = Value::Object(object);
        let fingerprint = canonical::hash64(&content);
        if let Some(generation) = generation {
            content["metadata"]["generation"] = generation;
        }
        let counts: Map<String, Value> = status
            .into_iter()
            .filter(|(key, _)| STATUS.contains(&key.as_str()))
            .collect();
        if !counts.is_empty() {
            content["status"] = Value::Object(counts);
        }
        conceal(resource, &mut content);
        Ok(Self {
            reference,
            uid,
            resource_version,
            labels,
            is_terminating,
            fingerprint,
            content: content.to_string().into_boxed_str(),
        })
    }
}

/// Replaces what must not be kept in clear: values of a Secret by their hashes, so that two of
/// them can still be compared, and copies of the object in annotations by nothing.
pub(crate) fn conceal(resource: Resource, content: &mut Value) {
    if let Some(annotations) = content
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(LAST_APPLIED);
    }
    if resource != Resource::Secret {
        return;
    }
    for field in ["data", "stringData"] {
        if let Some(data) = content.get_mut(field).and_then(Value::as_object_mut) {
            for value in data.values_mut() {
                *value = Value::from(format!("sha256:{}", canonical::hex(value, 64)));
            }
        }
    }
}

/// The entries that own fields of the object itself, without times: status and scale writes of
/// controllers are nobody's business here.
fn managers(entries: Value) -> Vec<Value> {
    let Value::Array(entries) = entries else {
        return Vec::new();
    };
    let is_of_object = |entry: &Value| {
        entry
            .get("subresource")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
    };
    let without_time = |entry: Value| {
        let mut entry = into_map(entry);
        entry.remove("time");
        entry.remove("fieldsType");
        Value::Object(entry)
    };
    entries
        .into_iter()
        .filter(is_of_object)
        .map(without_time)
        .collect()
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

fn string_map<M: FromIterator<(String, String)>>(value: Option<&Value>) -> M {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
