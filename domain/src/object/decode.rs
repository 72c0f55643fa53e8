//! From the JSON of the API server to what krane keeps of an object.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

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

impl LiveObject {
    /// What krane keeps of an object, from its JSON text.
    pub fn from_slice(resource: Resource, json: &[u8]) -> Result<Self, Undecodable> {
        let value = serde_json::from_slice(json).map_err(|error| Undecodable {
            resource,
            name: String::new(),
            reason: format!("no JSON, line {} column {}", error.line(), error.column()),
        })?;
        Self::from_json(resource, value)
    }

    /// What krane keeps of an object, from its JSON tree.
    pub fn from_json(resource: Resource, value: Value) -> Result<Self, Undecodable> {
        let metadata = &value["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        let labels = metadata["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        Ok(Self {
            reference: ObjectRef::new(resource, text("namespace"), text("name")),
            uid: Arc::from(text("uid")),
            resource_version: text("resourceVersion").parse().unwrap_or_default(),
            labels,
            is_terminating: metadata["deletionTimestamp"].is_string(),
            fingerprint: canonical::hash64(&value),
            content: value.to_string().into_boxed_str(),
        })
    }
}
