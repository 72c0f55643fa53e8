//! What other people do to the objects of krane: every kind of edit that a
//! plain apply undoes, and those that need the exclusive subtrees (D11a).

mod autoscaler;
mod deployment;
mod disruption_budget;
mod namespace;
mod policy;
mod replica_set;
mod secret;
mod service;

use std::fmt;

use krane_domain::object::{Rendered, Resource};
use serde_json::{Value, json};

pub use autoscaler::{AUTOSCALER_EDITS, AUTOSCALER_INTRUSIONS};
pub use deployment::{DEPLOYMENT_EDITS, DEPLOYMENT_EXEMPT, DEPLOYMENT_INTRUSIONS};
pub use disruption_budget::{DISRUPTION_BUDGET_EDITS, DISRUPTION_BUDGET_INTRUSIONS};
pub use namespace::NAMESPACE_EDITS;
pub use policy::{POLICY_EDITS, POLICY_INTRUSIONS};
pub use replica_set::{REPLICA_SET_EDITS, REPLICA_SET_INTRUSIONS};
pub use secret::{SECRET_EDITS, SECRET_INTRUSIONS};
pub use service::{ADDRESS_INTRUSIONS, HEADLESS_INTRUSIONS, SERVICE_EDITS, SERVICE_INTRUSIONS};

/// Changes one object in one way.
#[derive(Clone, Copy)]
pub struct Edit {
    /// What it does, in words.
    pub name: &'static str,
    /// The request for an object that is as given.
    pub change: fn(&Value) -> Change,
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

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
    /// A server-side apply of this manager that gives way to others.
    Propose(&'static str, Value),
    /// The whole object put in its place, as `kubectl replace`.
    Put(Value),
}

/// Every edit that krane undoes of this object.
pub fn undone(object: &Rendered) -> Vec<Edit> {
    undone_of(object.reference.resource, &object.body)
}

/// The same, of a live object of this kind or one as it is rendered.
pub fn undone_of(resource: Resource, object: &Value) -> Vec<Edit> {
    match resource {
        Resource::ReplicaSet => [&REPLICA_SET_EDITS[..], &REPLICA_SET_INTRUSIONS].concat(),
        Resource::Deployment => [&DEPLOYMENT_EDITS[..], &DEPLOYMENT_INTRUSIONS].concat(),
        Resource::Service => {
            let is_headless = object["spec"]["clusterIP"] == "None";
            let of_its_kind = if is_headless {
                &HEADLESS_INTRUSIONS[..]
            } else {
                &ADDRESS_INTRUSIONS
            };
            [&SERVICE_EDITS[..], &SERVICE_INTRUSIONS, of_its_kind].concat()
        }
        Resource::PodDisruptionBudget => {
            [&DISRUPTION_BUDGET_EDITS[..], &DISRUPTION_BUDGET_INTRUSIONS].concat()
        }
        Resource::HorizontalPodAutoscaler => {
            [&AUTOSCALER_EDITS[..], &AUTOSCALER_INTRUSIONS].concat()
        }
        Resource::CiliumNetworkPolicy => [&POLICY_EDITS[..], &POLICY_INTRUSIONS].concat(),
        Resource::Secret => [&SECRET_EDITS[..], &SECRET_INTRUSIONS].concat(),
        Resource::Namespace => NAMESPACE_EDITS.to_vec(),
        Resource::Pod => Vec::new(),
    }
}

/// Takes krane's mark off an object of any kind.
const MANAGED_BY_LABEL_REMOVED: Edit = Edit {
    name: "managed-by label removed",
    change: |_| {
        Change::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}))
    },
};

/// Takes another label of ours off an object of any kind.
const COMPONENT_LABEL_REMOVED: Edit = Edit {
    name: "our label removed",
    change: |_| {
        Change::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/component": null}}}))
    },
};

/// Changes a label of ours on an object of a workload.
const WORKSPACE_LABEL_CHANGED: Edit = Edit {
    name: "our label changed",
    change: |_| {
        Change::Merge(json!({"metadata": {"labels": {"unkey.com/workspace.id": "ws_other"}}}))
    },
};

fn patch(operations: Value) -> Change {
    Change::Patch(EDITOR, operations)
}

/// Who edits, unless a change says otherwise.
pub const EDITOR: &str = "kubectl-edit";
/// Who replaces whole objects.
pub const REPLACER: &str = "kubectl-replace";
