//! The ways in which the API server lets one change an object.

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::Value;

use crate::{Failure, Outcome};

/// A request that changes an object.
#[derive(Clone, Debug)]
pub enum Change {
    /// A JSON patch, under this manager.
    Patch(&'static str, Value),
    /// A merge patch, as `kubectl edit`.
    Merge(Value),
    /// A strategic merge patch, as `kubectl set image` and `kubectl patch`.
    Strategic(Value),
    /// `kubectl scale`.
    Scale(i32),
    /// A forced server-side apply of this manager.
    Apply(&'static str, Value),
    /// The whole object put in its place, as `kubectl replace`.
    Put(Value),
}

const MANAGER: &str = "kubectl-edit";

impl Change {
    pub(super) async fn carry_out(self, api: &Api<DynamicObject>, name: &str) -> Outcome {
        let params = |manager: &str| PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        match self {
            Self::Patch(manager, operations) => {
                // Without the feature of the client, which would be one more dependency.
                let uri = format!("{}/{name}?fieldManager={manager}", api.resource_url());
                let request = http::Request::patch(uri)
                    .header(http::header::CONTENT_TYPE, "application/json-patch+json")
                    .body(serde_json::to_vec(&operations)?)?;
                api.clone().into_client().request::<Value>(request).await?;
            }
            Self::Merge(patch) => {
                api.patch(name, &params(MANAGER), &Patch::Merge(patch))
                    .await?;
            }
            Self::Strategic(patch) => {
                api.patch(name, &params(MANAGER), &Patch::Strategic(patch))
                    .await?;
            }
            Self::Scale(replicas) => {
                let patch = serde_json::json!({"spec": {"replicas": replicas}});
                api.patch_scale(name, &params(MANAGER), &Patch::Merge(patch))
                    .await?;
            }
            Self::Apply(manager, body) => {
                api.patch(name, &params(manager).force(), &Patch::Apply(body))
                    .await?;
            }
            Self::Put(body) => {
                let body: DynamicObject = serde_json::from_value(body)
                    .map_err(|error| Failure::new(format!("not an object: {error}")))?;
                let params = PostParams {
                    field_manager: Some("kubectl-replace".to_owned()),
                    ..PostParams::default()
                };
                api.replace(name, &params, &body).await?;
            }
        }
        Ok(())
    }
}
