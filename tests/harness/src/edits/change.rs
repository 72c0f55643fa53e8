//! The ways in which the API server lets one change an object.

use krane_testcontract::edits::{Change, EDITOR, REPLACER};
use kube::{
    Api, Error,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::Value;

/// Sends the request.
pub async fn carry_out(change: Change, api: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
    let params = |manager: &str| PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    match change {
        Change::Patch(manager, operations) => {
            // Without the feature of the client, which would be one more dependency.
            let uri = format!("{}/{name}?fieldManager={manager}", api.resource_url());
            let request = http::Request::patch(uri)
                .header(http::header::CONTENT_TYPE, "application/json-patch+json")
                .body(serde_json::to_vec(&operations).map_err(Error::SerdeError)?)
                .map_err(Error::HttpError)?;
            api.clone().into_client().request::<Value>(request).await?;
        }
        Change::Merge(patch) => {
            api.patch(name, &params(EDITOR), &Patch::Merge(patch))
                .await?;
        }
        Change::Strategic(patch) => {
            api.patch(name, &params(EDITOR), &Patch::Strategic(patch))
                .await?;
        }
        Change::Scale(replicas) => {
            let patch = serde_json::json!({"spec": {"replicas": replicas}});
            api.patch_scale(name, &params(EDITOR), &Patch::Merge(patch))
                .await?;
        }
        Change::Apply(manager, body) => {
            api.patch(name, &params(manager).force(), &Patch::Apply(body))
                .await?;
        }
        Change::Propose(manager, body) => {
            api.patch(name, &params(manager), &Patch::Apply(body))
                .await?;
        }
        Change::Put(body) => {
            let body: DynamicObject = serde_json::from_value(body).map_err(Error::SerdeError)?;
            let params = PostParams {
                field_manager: Some(REPLACER.to_owned()),
                ..PostParams::default()
            };
            api.replace(name, &params, &body).await?;
        }
    }
    Ok(())
}
