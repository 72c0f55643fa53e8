//! What other people do to the objects of a real cluster, and how krane undoes it.

mod change;

use std::time::Duration;

use krane_domain::object::Resource;
use krane_testcontract::edits::undone_of;
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::Value;

use crate::{Api as Admin, Failure, Outcome, eventually, limits};

pub use change::carry_out;
pub use krane_testcontract::edits::{
    AUTOSCALER_EDITS, AUTOSCALER_INTRUSIONS, Change, DEPLOYMENT_EXEMPT, Edit, NAMESPACE_EDITS,
    POLICY_EDITS, POLICY_INTRUSIONS, REPLICA_SET_EDITS, REPLICA_SET_INTRUSIONS, SECRET_EDITS,
    SECRET_INTRUSIONS,
};

/// Generous beside the 250 ms it should take.
const RECOVERY: Duration = Duration::from_secs(12);

/// Counts the rollouts of a Deployment.
const ROLLOUTS: &str = "deployment.kubernetes.io/revision";

/// An object that edits are tried on.
#[derive(Clone)]
pub struct Victim {
    api: Api<DynamicObject>,
    resource: Resource,
    namespace: String,
    name: String,
    what: String,
    /// As krane left it.
    intact: Value,
}

impl Victim {
    /// A `ReplicaSet`.
    pub async fn replica_set(admin: &Admin, namespace: &str, name: &str) -> Outcome<Self> {
        Self::of(admin, Resource::ReplicaSet, namespace, name).await
    }

    /// A `HorizontalPodAutoscaler`.
    pub async fn autoscaler(admin: &Admin, namespace: &str, name: &str) -> Outcome<Self> {
        Self::of(admin, Resource::HorizontalPodAutoscaler, namespace, name).await
    }

    /// A `CiliumNetworkPolicy`.
    pub async fn policy(admin: &Admin, namespace: &str, name: &str) -> Outcome<Self> {
        Self::of(admin, Resource::CiliumNetworkPolicy, namespace, name).await
    }

    /// A Secret.
    pub async fn secret(admin: &Admin, namespace: &str, name: &str) -> Outcome<Self> {
        Self::of(admin, Resource::Secret, namespace, name).await
    }

    /// A Namespace.
    pub async fn namespace(admin: &Admin, name: &str) -> Outcome<Self> {
        // In the audit log it is within itself.
        Self::of(admin, Resource::Namespace, name, name).await
    }

    /// An object of any kind.
    pub async fn of(
        admin: &Admin,
        resource: Resource,
        namespace: &str,
        name: &str,
    ) -> Outcome<Self> {
        let (group, version) = (resource.group(), resource.version());
        let gvk = GroupVersionKind::gvk(group, version, resource.kind());
        let kind = ApiResource::from_gvk_with_plural(&gvk, resource.plural());
        let api = if resource.is_namespaced() {
            Api::namespaced_with(admin.client(), namespace, &kind)
        } else {
            Api::all_with(admin.client(), &kind)
        };
        let mut victim = Self {
            api,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            what: format!("{} {namespace}/{name}", resource.kind()),
            intact: Value::Null,
        };
        victim.accept().await?;
        Ok(victim)
    }

    /// Every edit that krane must undo of it.
    pub fn edits(&self) -> Vec<Edit> {
        undone_of(self.resource, &self.intact)
    }

    /// As it is now it is right.
    pub async fn accept(&mut self) -> Outcome {
        self.intact = serde_json::to_value(self.api.get(&self.name).await?)?;
        Ok(())
    }

    /// Carries the edit out; the object is then as somebody else wants it.
    pub async fn suffer(&self, edit: &Edit) -> Outcome {
        let what = format!("{}: {}", self.what, edit.name);
        eventually(&what, limits::SHORT, async || {
            let live = self
                .api
                .get(&self.name)
                .await
                .map_err(|error| error.to_string())?;
            let live = serde_json::to_value(live).map_err(|error| error.to_string())?;
            match carry_out((edit.change)(&live), &self.api, &self.name).await {
                // Its status has changed since: what was read is not what is replaced.
                Err(kube::Error::Api(status)) if status.code == 409 => Err(status.to_string()),
                done => Ok(done.map_err(Failure::from)),
            }
        })
        .await?
        .map_err(|failure| Failure::new(format!("{what}: {failure}")))
    }

    /// Waits until the object is as krane left it before.
    pub async fn recovers(&self, edit: &Edit) -> Outcome {
        let what = format!("{}: undone: {}", self.what, edit.name);
        eventually(&what, RECOVERY, async || {
            let live = self
                .api
                .get(&self.name)
                .await
                .map_err(|error| error.to_string())?;
            let live = serde_json::to_value(live).map_err(|error| error.to_string())?;
            difference(&self.intact, &live)
        })
        .await
    }

    /// Deletes it, and waits for krane to make it again: for whatever comes after an edit that was not undone.
    pub async fn renew(&mut self) -> Outcome {
        let uid = self.intact["metadata"]["uid"].clone();
        let deleted = self
            .api
            .delete(&self.name, &DeleteParams::background())
            .await;
        if let Err(error) = deleted.map(drop) {
            return Err(error.into());
        }
        self.intact = eventually("it is there again", limits::LONG, async || {
            let live = self
                .api
                .get(&self.name)
                .await
                .map_err(|error| error.to_string())?;
            let live = serde_json::to_value(live).map_err(|error| error.to_string())?;
            if live["metadata"]["uid"] == uid {
                Err("the old one".to_owned())
            } else {
                Ok(live)
            }
        })
        .await?;
        Ok(())
    }

    /// Whether it is as krane left it, looked at once.
    pub async fn is_intact(&self) -> Result<(), String> {
        let live = self
            .api
            .get(&self.name)
            .await
            .map_err(|error| error.to_string())?;
        difference(
            &self.intact,
            &serde_json::to_value(live).map_err(|error| error.to_string())?,
        )
    }

    /// Its namespace and name, as the audit log has them.
    pub fn place(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind and its name.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Its resource version now.
    pub async fn resource_version(&self) -> Outcome<String> {
        Ok(self
            .api
            .get(&self.name)
            .await?
            .resource_version()
            .unwrap_or_default())
    }
}

/// Spec or data, owners, our labels and our annotations must be the same; labels and annotations of others may be there.
fn difference(intact: &Value, live: &Value) -> Result<(), String> {
    for part in ["spec", "specs", "type", "data", "immutable"] {
        let (intact, live) = (chosen(intact, part), chosen(live, part));
        if intact != live {
            return Err(first_difference(part, &intact, &live));
        }
    }
    let owners = |object: &Value| object["metadata"]["ownerReferences"].clone();
    if owners(intact) != owners(live) {
        return Err(format!("owners are {}", owners(live)));
    }
    for part in ["labels", "annotations"] {
        let (ours, there) = (&intact["metadata"][part], &live["metadata"][part]);
        let ours = ours.as_object().into_iter().flatten();
        for (key, value) in ours.filter(|(key, _)| *key != ROLLOUTS) {
            if there.get(key) != Some(value) {
                return Err(format!("{part}.{key} is {:?}, not {value}", there.get(key)));
            }
        }
    }
    Ok(())
}

/// A part of an object without the addresses that the API server has chosen for it.
fn chosen(object: &Value, part: &str) -> Value {
    let mut part = object[part].clone();
    if part["clusterIP"] != "None"
        && let Some(fields) = part.as_object_mut()
    {
        fields.remove("clusterIP");
        fields.remove("clusterIPs");
    }
    part
}

fn first_difference(path: &str, intact: &Value, live: &Value) -> String {
    match (intact, live) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                if a != b {
                    return first_difference(&format!("{path}.{key}"), a, b);
                }
            }
            format!("{path} differs")
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b);
            pairs.map_or_else(String::new, |(index, (a, b))| {
                first_difference(&format!("{path}[{index}]"), a, b)
            })
        }
        _ => format!("{path} is {live}, not {intact}"),
    }
}
