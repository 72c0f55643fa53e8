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
use crate::ledger::Want;
use crate::shared::Shared;
use crate::world::reference_of;

/// What in the cluster is not as the control plane wants it.
pub(crate) fn difference(shared: &Shared, seconds: u64) -> Option<String> {
    let wants = shared.with(|ledger| ledger.wants.clone());
    let mut members: BTreeMap<krane_domain::ids::SharedKey, Vec<Member>> = BTreeMap::new();
    for (key, want) in &wants {
        let reference = ObjectRef::new(Resource::ReplicaSet, &*key.namespace, &*key.name);
        let live = shared.admin.get(&reference);
        let live = live.and_then(|live| LiveObject::from_json(reference.resource, live).ok());
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
                if let Some(unneeded) = unneeded.find(|object| shared.admin.get(object).is_some()) {
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
            }
            Want::Poison | Want::Unknown => {
                if let Some(live) = live.filter(LiveObject::is_ours)
                    && let Some(member) = Controller::Deployments.member_of_live(&live)
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
    for object in shared.admin.list("ReplicaSet", None) {
        let reference = reference_of(&object)?;
        if !wants.contains_key(&reference.key()) {
            return Some(format!("{reference} was never wanted"));
        }
    }
    None
}

fn differs(shared: &Shared, rendered: &Rendered, seconds: u64) -> Option<String> {
    let reference = &rendered.reference;
    let Some(live) = shared.admin.get(reference) else {
        return Some(format!("{reference} is missing"));
    };
    let of = stamp(&live);
    let live = match LiveObject::from_json(reference.resource, live) {
        Ok(live) => live,
        Err(problem) => return Some(problem.to_string()),
    };
    match drift::decide(rendered, Some(&live), None, seconds) {
        Decision::InPlace => None,
        // One that somebody else made is used as it is.
        Decision::NotOurs if reference.resource == Resource::Namespace => None,
        other => Some(format!(
            "{reference} (from {of:?}, wanted {:?}): {other:?}",
            stamp(&rendered.body)
        )),
    }
}

/// What the control plane was told last and is not so.
pub(crate) fn untold(shared: &Shared) -> Option<String> {
    let newest: BTreeMap<ObjectKey, Report> = shared.control.look(|told| {
        let newest = told.newest().into_iter();
        newest
            .map(|(key, report)| (key.clone(), report.clone()))
            .collect()
    });
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
    for object in shared.admin.list("ReplicaSet", None) {
        let reference = reference_of(&object)?;
        let key = reference.key();
        there.insert(key.clone());
        if flaps(&object) || object["metadata"]["labels"][labels::DEPLOYMENT_ID].is_null() {
            continue;
        }
        let live = LiveObject::from_json(reference.resource, object).ok()?;
        if !live.is_ours() {
            continue;
        }
        let pods = pods.get(&live.uid).map(Vec::as_slice).unwrap_or_default();
        let pods: Vec<&PodDigest> = pods.iter().collect();
        let observation = kinds::observe(Controller::Deployments, &live, &pods, &shared.rules)?;
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
