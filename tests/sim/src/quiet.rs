//! Liveness: what must come true once nothing goes wrong any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krane_domain::drift::{self, Decision};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::{self, Member};
use krane_domain::labels;
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::pod::PodDigest;
use krane_domain::report::Report;

use crate::judge::stamp;
use crate::kinds::{companions, controller_of, is_primary, primary, sentinel_of};
use crate::ledger::Want;
use crate::shared::Shared;
use crate::world::reference_of;

/// What in the cluster is not as the control plane wants it.
pub(crate) fn difference(shared: &Shared, seconds: u64) -> Option<String> {
    let wants = shared.with(|ledger| ledger.wants.clone());
    let mut members: BTreeMap<krane_domain::ids::SharedKey, Vec<Member>> = BTreeMap::new();
    for (key, want) in &wants {
        let reference = primary(key);
        let live = shared.admin.live(&reference);
        match want {
            Want::Apply(desired) => {
                let mut all = vec![desired.render(&shared.rules, live.as_ref())];
                all.extend(
                    live.iter()
                        .flat_map(|owner| desired.dependants(&shared.rules, owner)),
                );
                for rendered in all {
                    if let Some(text) = differs(shared, &rendered, seconds) {
                        return Some(text);
                    }
                }
                let mut unneeded = desired.unneeded().into_iter();
                if let Some(unneeded) = unneeded.find(|object| shared.admin.has(object)) {
                    return Some(format!("{unneeded} is there and not needed"));
                }
                for needed in desired.needs(&shared.rules) {
                    members.entry(needed).or_default().push(desired.member());
                }
            }
            Want::Delete => {
                // One that lost our label is nobody's to delete.
                if live.is_some_and(|live| live.is_ours()) {
                    return Some(format!("{key} is still there"));
                }
                if let Some(left) = left_behind(shared, key) {
                    return Some(format!("{left} is there, and its sentinel is not"));
                }
            }
            Want::Poison | Want::Unknown => {
                if let Some(live) = live.filter(LiveObject::is_ours)
                    && let Some(member) = controller_of(key).member_of_live(&live)
                {
                    for needed in kinds::shared_keys(&key.namespace, &member, &shared.rules) {
                        members.entry(needed).or_default().push(member.clone());
                    }
                }
            }
        }
    }
    for (key, mut members) in members {
        members.sort();
        members.dedup();
        let rendered = kinds::render_shared(&key, &members, &shared.rules)?;
        if let Some(text) = differs(shared, &rendered, seconds) {
            return Some(text);
        }
    }
    never_wanted(shared, &wants)
}

/// What hangs on a sentinel that is gone.
fn left_behind(shared: &Shared, key: &ObjectKey) -> Option<ObjectRef> {
    if controller_of(key) != Controller::Sentinels {
        return None;
    }
    companions(key).into_iter().find(|companion| {
        let live = shared.admin.live(companion);
        live.is_some_and(|live| live.is_ours())
    })
}

/// An object that is there for no reason.
fn never_wanted(shared: &Shared, wants: &BTreeMap<ObjectKey, Want>) -> Option<String> {
    let kinds = [
        "ReplicaSet",
        "Deployment",
        "CiliumNetworkPolicy",
        "Service",
        "PodDisruptionBudget",
    ];
    let all = kinds.iter().flat_map(|kind| shared.admin.list(kind, None));
    for object in all {
        let reference = reference_of(&object)?;
        let key =
            sentinel_of(&reference).or_else(|| is_primary(&reference).then(|| reference.key()));
        if key.is_some_and(|key| !wants.contains_key(&key)) {
            return Some(format!("{reference} was never wanted"));
        }
    }
    None
}

fn differs(shared: &Shared, rendered: &Rendered, seconds: u64) -> Option<String> {
    let reference = &rendered.reference;
    let Some(live) = shared.admin.live(reference) else {
        return Some(format!("{reference} is missing"));
    };
    match drift::decide(rendered, Some(&live), None, seconds) {
        Decision::InPlace => None,
        // One that somebody else made is used as it is.
        Decision::NotOurs if reference.resource == Resource::Namespace => None,
        other => Some(format!(
            "{reference} (from {:?}, wanted {:?}): {other:?}",
            stamp(&live.value()),
            stamp(&rendered.body)
        )),
    }
}

/// What the control plane was told last and is not so.
pub(crate) fn untold(shared: &Shared) -> Option<String> {
    let mut newest: BTreeMap<ObjectKey, Report> = BTreeMap::new();
    for control in &shared.controls {
        control.look(|told| {
            let reports = told.newest().into_iter();
            newest.extend(reports.map(|(key, report)| (key.clone(), report.clone())));
        });
    }
    let wants = shared.with(|ledger| ledger.wants.clone());
    let mut there = BTreeSet::new();
    let mut pods: BTreeMap<Arc<str>, Vec<PodDigest>> = BTreeMap::new();
    for pod in shared.admin.list("Pod", None) {
        let digest = PodDigest::from_slice(pod.to_string().as_bytes()).ok();
        if let Some(digest) = digest
            && let Some(owner) = digest.owner.clone()
        {
            pods.entry(owner).or_default().push(digest);
        }
    }
    let mut all = shared.admin.list("ReplicaSet", None);
    all.extend(shared.admin.list("Deployment", None));
    for object in all {
        let reference = reference_of(&object)?;
        let key = reference.key();
        if !is_primary(&reference) {
            continue;
        }
        there.insert(key.clone());
        let controller = controller_of(&key);
        let id = match controller {
            Controller::Sentinels => labels::SENTINEL_ID,
            _ => labels::DEPLOYMENT_ID,
        };
        if flaps(&object) || object["metadata"]["labels"][id].is_null() {
            continue;
        }
        let live = LiveObject::from_json(reference.resource, object).ok()?;
        if !live.is_ours() {
            continue;
        }
        let pods = pods.get(&live.uid).map(Vec::as_slice).unwrap_or_default();
        let pods: Vec<&PodDigest> = pods.iter().collect();
        let observation = kinds::observe(controller, &live, &pods, &shared.rules)?;
        if newest.get(&key) != Some(&observation.report) {
            let told = newest.get(&key);
            return Some(format!("{key} is {:?}, told {told:?}", observation.report));
        }
    }
    for (key, report) in newest {
        // Nobody can know what a dead process told of an object that nobody knows any more.
        let is_known = !matches!(wants.get(&key), Some(Want::Unknown | Want::Poison) | None);
        if is_known && !there.contains(&key) && !report.is_gone() {
            return Some(format!("{key} is gone, told {report:?}"));
        }
    }
    None
}

/// Whether its pods never come to rest.
fn flaps(object: &serde_json::Value) -> bool {
    let containers = &object["spec"]["template"]["spec"]["containers"];
    let image = containers[0]["image"].as_str().unwrap_or_default();
    image.ends_with(":crash") || image.ends_with(":fail")
}
