//! A workload as a ReplicaSet.

use serde_json::json;

use super::DesiredDeployment;
use crate::kinds::Rules;
use crate::object::{ObjectRef, Rendered, Resource};

/// The ReplicaSet of a workload.
pub(crate) fn render(desired: &DesiredDeployment, _rules: &Rules) -> Rendered {
    let key = &desired.key;
    Rendered {
        reference: ObjectRef::new(
            Resource::ReplicaSet,
            key.namespace.clone(),
            key.name.clone(),
        ),
        body: json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": { "name": &*key.name, "namespace": &*key.namespace },
        }),
    }
}
