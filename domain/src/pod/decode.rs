//! From the JSON of a pod to its digest.

use super::PodDigest;
use crate::object::{Resource, Undecodable};

impl PodDigest {
    /// The digest of a pod, from its JSON text.
    pub fn from_slice(_json: &[u8]) -> Result<Self, Undecodable> {
        Err(Undecodable {
            resource: Resource::Pod,
            name: String::new(),
            reason: "no name".to_owned(),
        })
    }
}
