//! What a live ReplicaSet and its pods say.

use std::sync::Arc;

use crate::kinds::{Member, Observation, Rules};
use crate::labels;
use crate::object::LiveObject;
use crate::pod::PodDigest;
use crate::report::Report;

/// What a live ReplicaSet contributes to the shared objects of its namespace.
pub(crate) fn member_of_live(live: &LiveObject) -> Option<Member> {
    let id = |key| live.label(key).filter(|id| !id.is_empty()).map(Arc::from);
    Some(Member {
        workspace_id: id(labels::WORKSPACE_ID)?,
        environment_id: id(labels::ENVIRONMENT_ID)?,
        port: 8080,
    })
}

/// What to report about a ReplicaSet with these pods.
pub(crate) fn observe(live: &LiveObject, _pods: &[&PodDigest], _rules: &Rules) -> Observation {
    Observation {
        report: Report::Instances {
            key: live.reference.key(),
            instances: Vec::new(),
        },
        outdated: 0,
        running: 0,
    }
}
