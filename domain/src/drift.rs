//! What has to happen so that a live object becomes what krane renders.
//!
//! The comparison was measured on a real API server (`tests/contract` repeats it): whoever follows
//! it writes when, and only when, a write would change something.

mod adopt;
mod compare;
mod difference;
mod explain;
mod foreign;
mod fuse;
mod hold;
mod take_over;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use adopt::adopted;
pub(crate) use compare::own_part;
pub use difference::{Difference, DifferenceKind};
pub use explain::{Attributed, Explanation, explain, owners_of};
pub use foreign::Foreign;
pub use fuse::FuseMemory;
pub use hold::hold_until;
use serde_json::Value;
pub use take_over::{is_left_behind, may_be_left_behind};

use crate::canonical;
use crate::invalid::Invalid;
use crate::labels;
use crate::object::{LiveObject, Rendered, Resource};

/// What to do about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: every field krane wants is there and krane owns it.
    InPlace,
    /// Apply it without a uid, after making sure that no foreign object has its name (D15).
    Create,
    /// Apply it with this uid.
    Update {
        /// `metadata.uid` for the body of the apply.
        uid: Arc<str>,
        /// What differs; never empty.
        differences: Vec<Difference>,
    },
    /// Take over what others own where only krane may own anything, then apply: what krane does
    /// not want is then its own to remove (D11a). The apply follows also when nothing seems to
    /// differ any more: a key added to what is owned as a whole shows by its owner alone.
    Adopt {
        /// `metadata.uid` of the live object.
        uid: Arc<str>,
        /// Who owns what that a plain apply would leave behind; never empty.
        foreign: Vec<Foreign>,
    },
    /// Nothing until the live object is gone.
    Terminating,
    /// Nothing, ever: the live object does not carry krane's label (D15).
    NotOurs,
    /// Nothing until this moment: a person put the object on hold (D22c).
    Held {
        /// Seconds since the Unix epoch.
        until: u64,
        /// What krane would change; empty when the object is in place.
        differences: Vec<Difference>,
    },
    /// Delete the object with this uid, then create it: what differs cannot be changed (D11c).
    Recreate {
        /// `metadata.uid` for the precondition of the delete.
        uid: Arc<str>,
    },
    /// Quarantine: it can be neither changed nor replaced.
    Refuse(Invalid),
}

/// A [`Decision`] with what else the comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What to do.
    pub decision: Decision,
    /// Differences that krane's own apply could not remove and that are therefore left alone.
    pub fused: Vec<Difference>,
    /// Why a hold annotation is not obeyed.
    pub ignored_hold: Option<String>,
}

impl From<Decision> for Judgement {
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            fused: Vec::new(),
            ignored_hold: None,
        }
    }
}

/// What a repair undoes, as a number: the same edit, made again, has the same one.
pub fn fingerprint(differences: &[Difference]) -> u64 {
    let all: Vec<Value> = differences
        .iter()
        .map(|difference| {
            serde_json::json!([difference.path, difference.kind as u8, difference.live_hash])
        })
        .collect();
    canonical::hash64(&Value::Array(all))
}

/// Who owns what where only krane may own anything, as a number: the same intrusion, made again,
/// has the same one.
pub fn fingerprint_of_foreign(foreign: &[Foreign]) -> u64 {
    let all: Vec<Value> = foreign
        .iter()
        .map(|foreign| serde_json::json!([foreign.manager, foreign.paths]))
        .collect();
    canonical::hash64(&Value::Array(all))
}

/// Whether krane's own entry of the live object holds this field, named by its parents and itself.
///
/// What others took over by a change is no longer in it, whichever subresource they used.
pub(crate) fn owns(live: &LiveObject, field: &[&str]) -> bool {
    let tree = live.value();
    let api_version = live.reference.resource.api_version();
    let Some(fields) = compare::own_fields(&tree, &api_version) else {
        return false;
    };
    let mut parts = Some(fields);
    field.iter().all(|key| {
        let node = parts.and_then(|parts| parts.get(&format!("f:{key}")));
        parts = node.and_then(Value::as_object);
        node.is_some()
    })
}

/// Until when a person put a live object on hold, in seconds since the Unix epoch (D22c).
pub fn held_until(live: &LiveObject, unix_seconds: u64) -> Option<u64> {
    let hold = hold::read(live.reference.resource, &live.value(), unix_seconds);
    hold.ok().flatten()
}

/// What to do about one object.
///
/// `fuse` is the memory of the last apply of this object, `unix_seconds` the wall clock, for
/// holds.
pub fn decide(
    rendered: &Rendered,
    live: Option<&LiveObject>,
    fuse: Option<&FuseMemory>,
    unix_seconds: u64,
) -> Decision {
    judge(rendered, live, fuse, unix_seconds).decision
}

/// As [`decide`], with everything else the comparison found.
pub fn judge(
    rendered: &Rendered,
    live: Option<&LiveObject>,
    fuse: Option<&FuseMemory>,
    unix_seconds: u64,
) -> Judgement {
    let Some(live) = live else {
        return Decision::Create.into();
    };
    if live.is_terminating {
        return Decision::Terminating.into();
    }
    if !live.is_ours() {
        return Decision::NotOurs.into();
    }
    let tree = live.value();
    let differences = worth_a_write(compare::differences(rendered, &tree));
    let foreign = foreign::beyond(
        foreign::foreign(live.reference.resource, &tree),
        &differences,
    );
    let (hold, ignored_hold) = match hold::read(live.reference.resource, &tree, unix_seconds) {
        Ok(until) => (until, None),
        Err(problem) => (None, Some(problem)),
    };
    let mut fused = Vec::new();
    let decision = if let Some(until) = hold {
        Decision::Held { until, differences }
    } else if let Some(replacement) = replacement(rendered, live, &tree, &differences) {
        replacement
    } else if !foreign.is_empty() {
        Decision::Adopt {
            uid: Arc::clone(&live.uid),
            foreign,
        }
    } else if differences.is_empty() {
        Decision::InPlace
    } else if fuse.is_some_and(|fuse| fuse.covers(rendered, &differences)) {
        fused = differences;
        Decision::InPlace
    } else {
        Decision::Update {
            uid: Arc::clone(&live.uid),
            differences,
        }
    };
    Judgement {
        decision,
        fused,
        ignored_hold,
    }
}

/// A newer krane alone rewrites nothing: its number goes along with the next real change (D16).
fn worth_a_write(differences: Vec<Difference>) -> Vec<Difference> {
    let renderer = difference::join("metadata.annotations", labels::RENDERER_ANNOTATION);
    if differences
        .iter()
        .all(|difference| difference.path == renderer)
    {
        return Vec::new();
    }
    differences
}

/// What to do when the API server would refuse an update of what differs; `None` when it would
/// not.
fn replacement(
    rendered: &Rendered,
    live: &LiveObject,
    tree: &Value,
    differences: &[Difference],
) -> Option<Decision> {
    let recreate = || Decision::Recreate {
        uid: Arc::clone(&live.uid),
    };
    let is_secret = live.reference.resource == Resource::Secret;
    if is_secret && tree["immutable"] == Value::Bool(true) {
        // One that somebody froze would refuse the next password, and keep what was added to it.
        return Some(recreate());
    }
    if differences.is_empty() {
        return None;
    }
    let differs = |path| rendered.body.pointer(path) != tree.pointer(path);
    match live.reference.resource {
        Resource::ReplicaSet | Resource::Deployment if differs("/spec/selector") => {
            let tenant = [
                labels::WORKSPACE_ID,
                labels::PROJECT_ID,
                labels::ENVIRONMENT_ID,
            ];
            let wanted = rendered.body.pointer("/metadata/labels");
            let wanted = |key| {
                wanted
                    .and_then(|labels| labels.get(key))
                    .and_then(Value::as_str)
            };
            if tenant.iter().all(|key| live.label(key) == wanted(*key)) {
                return Some(recreate());
            }
            Some(Decision::Refuse(Invalid::new(
                "k8s_name",
                format!(
                    "{} belongs to another workspace, project or environment",
                    live.reference
                ),
                "send another name, or delete the object that has it",
            )))
        }
        Resource::Secret if differs("/type") => Some(recreate()),
        // Headless or not: that is for life.
        Resource::Service if is_headless(&rendered.body) != is_headless(tree) => Some(recreate()),
        Resource::ReplicaSet
        | Resource::Deployment
        | Resource::Service
        | Resource::PodDisruptionBudget
        | Resource::HorizontalPodAutoscaler
        | Resource::Secret
        | Resource::Namespace
        | Resource::CiliumNetworkPolicy
        | Resource::Pod => None,
    }
}

fn is_headless(service: &Value) -> bool {
    service.pointer("/spec/clusterIP").and_then(Value::as_str) == Some("None")
}

/// In what a live object, as a tree, differs from what is rendered at this path or below it.
pub(crate) fn differences_below(rendered: &Rendered, live: &Value, path: &str) -> Vec<Difference> {
    let mut differences = compare::differences(rendered, live);
    differences.retain(|difference| {
        difference.path.is_empty() || foreign::is_within(&difference.path, path)
    });
    differences
}

/// Whether somebody else owns something at this path or below it, where only krane may.
pub(crate) fn is_foreign_below(resource: Resource, live: &Value, path: &str) -> bool {
    let foreign = foreign::foreign(resource, live);
    let mut paths = foreign.iter().flat_map(|foreign| &foreign.paths);
    paths.any(|found| foreign::is_within(found, path))
}
