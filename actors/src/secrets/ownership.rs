//! Compares pods with the desired states (D50).

use std::sync::Arc;

use krane_domain::ids::Moment;
use krane_domain::secrets::{Ownership, PodOrigin, Unproved};

use super::metrics::SecretsMetrics;
use crate::lease::Leadership;
use crate::store::Store;

/// Whether a pod is one of a desired deployment. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PodOwnership {
    deployments: Option<Arc<Store>>,
    leadership: Leadership,
}

impl PodOwnership {
    /// Looks into the store of the deployments, where there is one.
    pub fn new(deployments: Option<Arc<Store>>, leadership: Leadership) -> Self {
        Self {
            deployments,
            leadership,
        }
    }

    pub(super) fn judge(&self, pod: &PodOrigin<'_>, now: Moment) -> Ownership {
        match &self.deployments {
            Some(store) => store.ownership(pod, self.leadership.term(now), now),
            None => Ownership::Unproved(Unproved::StreamUnread),
        }
    }

    fn cannot_judge(&self, now: Moment) -> Option<Unproved> {
        match &self.deployments {
            Some(store) => store.cannot_judge_pods(self.leadership.term(now), now),
            None => Some(Unproved::StreamUnread),
        }
    }
}

/// What is shown of how pods are proved, where there is a vault.
#[derive(Clone, Debug)]
pub struct SecretsStatus {
    ownership: PodOwnership,
    metrics: SecretsMetrics,
}

impl SecretsStatus {
    pub(crate) fn new(ownership: PodOwnership, metrics: SecretsMetrics) -> Self {
        Self { ownership, metrics }
    }

    /// Why no pod can be compared with the desired states at present, if so.
    pub fn cannot_judge(&self, now: Moment) -> Option<Unproved> {
        self.ownership.cannot_judge(now)
    }

    /// How many pods were given secrets without that proof since the process started, by reason.
    pub fn unproved(&self) -> impl Iterator<Item = (Unproved, u64)> {
        let counted = |why| (why, self.metrics.unproved_because(why));
        Unproved::ALL.into_iter().map(counted)
    }
}
