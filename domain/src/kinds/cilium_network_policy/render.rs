//! A policy as it is applied.

use serde_json::{Value, json};

use super::DesiredPolicy;
use crate::kinds::{RENDERER, WantedKind};
use crate::labels;
use crate::object::Rendered;

/// The policy under the names and labels that are krane's to give.
pub(super) fn render(desired: &DesiredPolicy) -> Rendered {
    let reference = desired.reference();
    let mut annotations = desired.annotations.clone();
    annotations.insert(labels::RENDERER_ANNOTATION.to_owned(), RENDERER.into());
    let mut body = desired.body.clone();
    body.insert(
        "apiVersion".to_owned(),
        reference.resource.api_version().into(),
    );
    body.insert("kind".to_owned(), reference.resource.kind().into());
    body.insert(
        "metadata".to_owned(),
        json!({
            "name": &*reference.name,
            "namespace": &*reference.namespace,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::COMPONENT: labels::COMPONENT_POLICY,
                labels::NETWORK_POLICY_ID: &*desired.policy_id,
            },
            "annotations": annotations,
        }),
    );
    Rendered::new(reference, Value::Object(body))
}
