//! Other people in the cluster: which objects they meet, and what they do to them.

use futures::FutureExt;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_sim::cluster::Patch;
use krane_testcontract::edits::{DEPLOYMENT_EXEMPT, undone};
use krane_testcontract::memory::Somebody;
use krane_testcontract::other::Other;
use serde_json::{Value, json};

use super::{World, reference_of};
use crate::kinds::primary;

impl World {
    pub(super) fn squat(&self, which: u8) {
        let subjects: Vec<usize> = self.script.subjects().into_iter().collect();
        let Some(subject) = subjects.get(usize::from(which) % subjects.len().max(1)) else {
            return;
        };
        let object = primary(&self.script.key(*subject));
        let labels = json!({"app": "squatter"});
        let spec = if object.resource == Resource::CiliumNetworkPolicy {
            json!({"endpointSelector": {}, "ingress": []})
        } else {
            json!({
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "a"}]},
                },
            })
        };
        let body = json!({
            "apiVersion": object.resource.api_version(), "kind": object.resource.kind(),
            "metadata": {
                "name": &*object.name, "namespace": &*object.namespace, "labels": labels,
            },
            "spec": spec,
        });
        let _ = self.shared.admin.create_namespace(&object.namespace);
        let _ = self.shared.admin.create(body, "kubectl-create");
    }

    pub(super) fn pod(&self, which: u16) -> Option<ObjectRef> {
        let pods = self.shared.admin.list("Pod", None);
        let pod = pods.get(usize::from(which) % pods.len().max(1))?;
        reference_of(pod)
    }

    /// An object of ours, of any kind that krane writes.
    pub(super) fn object(&self, which: u16) -> Option<ObjectRef> {
        let kinds = [
            "ReplicaSet",
            "CiliumNetworkPolicy",
            "Deployment",
            "Service",
            "PodDisruptionBudget",
        ];
        let mut objects: Vec<Value> = kinds
            .iter()
            .flat_map(|kind| self.shared.admin.list(kind, None))
            .collect();
        // What the controller of Deployments makes is its own affair.
        objects.retain(|object| object["metadata"]["ownerReferences"][0]["controller"] != true);
        let object = objects.get(usize::from(which) % objects.len().max(1))?;
        reference_of(object)
    }

    pub(super) fn edit(&self, which: u16, how: u8) {
        let Some(object) = self.object(which) else {
            return;
        };
        if !matches!(
            object.resource,
            Resource::ReplicaSet | Resource::CiliumNetworkPolicy
        ) {
            return self.edit_as_contracted(&object, how);
        }
        let is_workload = object.resource == Resource::ReplicaSet;
        let (manager, patch) = match how % 5 {
            0 if is_workload => ("kubectl-scale", json!({"spec": {"replicas": how % 7}})),
            1 if is_workload => (
                "kubectl-edit",
                json!({"spec": {"minReadySeconds": u32::from(how) + 7}}),
            ),
            2 => (
                "kubectl-annotate",
                json!({"metadata": {"annotations": {"somebody": "else"}}}),
            ),
            3 => (
                "kubectl-label",
                json!({"metadata": {"labels": {"unkey.com/workspace.id": "other"}}}),
            ),
            _ if is_workload => (
                "kubectl-edit",
                json!({"spec": {"template": {"metadata": {"labels": {"added": "label"}}}}}),
            ),
            _ => ("kubectl-edit", json!({"spec": {"description": "edited"}})),
        };
        let _ = self
            .shared
            .admin
            .patch(&object, manager, "", &Patch::Merge(patch));
    }

    /// One of the edits whose effect is the same on a real API server.
    fn edit_as_contracted(&self, object: &ObjectRef, how: u8) {
        let Some(live) = self.shared.admin.get(object) else {
            return;
        };
        let rendered = Rendered::new(object.clone(), live.clone());
        let mut edits = undone(&rendered);
        if object.resource == Resource::Deployment {
            edits.extend(DEPLOYMENT_EXEMPT);
        }
        // Labels are taken off elsewhere.
        edits.retain(|edit| !edit.name.contains("managed-by"));
        let edit = edits[usize::from(how) % edits.len()];
        self.shared
            .with(|ledger| ledger.note(&format!("edit: {} of {object}", edit.name)));
        let somebody = Somebody(self.shared.admin.clone());
        // Refused or not: whatever it is, krane puts it right.
        let _ = somebody.change(object, (edit.change)(&live)).now_or_never();
    }
}
