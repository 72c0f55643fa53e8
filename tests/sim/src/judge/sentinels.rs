//! Safety of sentinels: what hangs on them, and what is said of them.

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::{self, Rules};
use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_domain::report::{Health, Report};
use krane_sim::cluster::Admin;
use serde_json::Value;

use super::{is_ours, is_terminating};
use crate::kinds::companions;
use crate::ledger::Ledger;

impl Ledger {
    /// S8: what hangs on a sentinel goes only with it, or when it is of another sort than wanted.
    pub(super) fn judge_companion(
        &mut self,
        object: &ObjectRef,
        live: &Value,
        sentinel: &ObjectKey,
    ) {
        let is_headless = live["spec"]["clusterIP"] == "None";
        let is_of_another_sort = object.resource == Resource::Service
            && is_headless != object.name.ends_with("-gossip-lan");
        if !self.is_called_for(sentinel) && !is_of_another_sort {
            self.violate(
                "S8",
                format!("{object} is deleted, and its sentinel is not"),
            );
        }
    }

    /// S13: a sentinel goes after what nobody would take away after it.
    pub(super) fn judge_order(&mut self, admin: &Admin, sentinel: &ObjectKey) {
        let live = companions(sentinel).into_iter().find(|companion| {
            let live = admin.get(companion);
            live.is_some_and(|live| is_ours(&live) && !is_terminating(&live))
        });
        if let Some(companion) = live.filter(|_| !self.was_lagging && !self.had_late) {
            self.violate("S13", format!("{sentinel} is deleted before {companion}"));
        }
    }

    /// What may be said of a sentinel from now on.
    pub(super) fn show_health(&mut self, live: &LiveObject) {
        let value = live.value();
        let rules = Rules::default();
        if let Some(seen) = kinds::observe(Controller::Sentinels, live, &[], &rules) {
            if let Some(text) = untrue(&seen.report, &value) {
                self.violate("S10", format!("{}: {text}", live.reference));
            }
            let known = self.health.entry(live.reference.key()).or_default();
            if !known.contains(&seen.report) {
                known.push(seen.report);
            }
        }
    }
}

/// What is wrong with a report about a Deployment like this, seen without krane's own eyes.
fn untrue(report: &Report, live: &Value) -> Option<String> {
    let Report::Health {
        available,
        health,
        running_image,
        ..
    } = report
    else {
        return Some(format!("{report:?} says nothing of a sentinel"));
    };
    let status = |field: &str| live["status"][field].as_u64().unwrap_or_default();
    let replicas = live["spec"]["replicas"].as_u64().unwrap_or_default();
    let is_rolled_out = live["status"]["observedGeneration"] == live["metadata"]["generation"]
        && status("updatedReplicas") >= replicas
        && status("availableReplicas") >= replicas
        && status("unavailableReplicas") == 0;
    let is_right = match health {
        Health::Paused => replicas == 0,
        Health::Healthy => replicas > 0 && status("availableReplicas") > 0,
        Health::Unhealthy => replicas > 0 && status("availableReplicas") == 0,
    };
    let is_true = u64::from(*available) == status("availableReplicas")
        && is_right
        && is_rolled_out != running_image.is_empty();
    (!is_true).then(|| format!("{report:?} of {}", live["status"]))
}
