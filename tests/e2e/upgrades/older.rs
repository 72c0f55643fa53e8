//! Objects as an earlier version of krane rendered them: one label more, and of most kinds other
//! details. None of it is what the control plane says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krane_control_plane::wire::Wire;
use krane_domain::desired::Change;
use krane_domain::ids::Controller;
use krane_domain::kinds::{Desired, Region, Rules};
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_ports::Answer;
use krane_sim::control_plane::{PLATFORM, REGION, samples};
use krane_testharness::{Failure, Outcome, World};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};
use prost::Message;
use serde_json::json;

use super::Wanted;

const LABEL: &str = "unkey.com/legacy";
const ALL: [Resource; 6] = [
    Resource::Namespace,
    Resource::ReplicaSet,
    Resource::Deployment,
    Resource::Service,
    Resource::PodDisruptionBudget,
    Resource::CiliumNetworkPolicy,
];

fn api(world: &World, resource: Resource, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = (resource.group(), resource.version());
    let gvk = GroupVersionKind::gvk(group, version, resource.kind());
    let kind = ApiResource::from_gvk_with_plural(&gvk, resource.plural());
    if resource.is_namespaced() && !namespace.is_empty() {
        Api::namespaced_with(world.api.client(), namespace, &kind)
    } else {
        Api::all_with(world.api.client(), &kind)
    }
}

/// What is there and not on its way out: the namespaces of an earlier test may still be.
async fn stay(
    world: &World,
    resource: Resource,
    params: &ListParams,
) -> Outcome<Vec<DynamicObject>> {
    let namespaces = api(world, Resource::Namespace, "");
    let leaving: BTreeSet<String> = namespaces
        .list(&ListParams::default())
        .await?
        .into_iter()
        .filter(|found| found.metadata.deletion_timestamp.is_some())
        .map(|found| found.name_any())
        .collect();
    let found = api(world, resource, "").list(params).await?.into_iter();
    let stays = |found: &DynamicObject| {
        let namespace = found.namespace().unwrap_or_else(|| found.name_any());
        found.metadata.deletion_timestamp.is_none() && !leaving.contains(&namespace)
    };
    Ok(found.filter(stays).collect())
}

/// What looks older, with its uid.
pub(super) async fn left(world: &World) -> Outcome<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let params = ListParams::default().labels(LABEL);
    for resource in ALL {
        for found in stay(world, resource, &params).await? {
            let namespace = found.namespace().unwrap_or_default();
            let name = format!("{} {namespace}/{}", resource.kind(), found.name_any());
            all.insert(name, found.uid().unwrap_or_default());
        }
    }
    Ok(all)
}

/// What krane makes of a message.
fn desired(controller: Controller, message: &impl Message, rules: &Rules) -> Outcome<Desired> {
    let wire = Wire::new(PLATFORM, REGION, controller, Arc::new(rules.clone()));
    let answer = wire.answer(&message.encode_to_vec().into());
    if let Answer::State {
        change: Ok(Change::Apply(desired)),
        ..
    } = answer
    {
        return Ok(desired);
    }
    Err(Failure::new(format!("no state to apply: {answer:?}")))
}

/// Applied by an earlier version.
async fn apply(world: &World, mut older: Rendered) -> Outcome<LiveObject> {
    older.body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
    older.body["metadata"]["labels"][LABEL] = json!("x");
    let ObjectRef {
        resource,
        namespace,
        name,
    } = &older.reference;
    let krane = PatchParams::apply("krane").force();
    let api = api(world, *resource, namespace);
    let live = api.patch(name, &krane, &Patch::Apply(&older.body)).await?;
    Ok(LiveObject::from_json(
        *resource,
        serde_json::to_value(live)?,
    )?)
}

/// The details that were others.
fn detail(rendered: &mut Rendered) {
    let spec = &mut rendered.body["spec"];
    match rendered.reference.resource {
        Resource::ReplicaSet => spec["minReadySeconds"] = json!(1),
        Resource::Deployment => {
            spec["minReadySeconds"] = json!(5);
            let template = &mut spec["template"];
            if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
                labels.remove("app.kubernetes.io/managed-by");
            }
            let container = &mut template["spec"]["containers"][0];
            for (probe, path) in [("livenessProbe", "live"), ("readinessProbe", "ready")] {
                let path = format!("/_unkey/internal/health/{path}");
                container[probe]["httpGet"]["path"] = json!(path);
            }
        }
        Resource::PodDisruptionBudget => {
            if let Some(fields) = spec.as_object_mut() {
                fields.remove("unhealthyPodEvictionPolicy");
            }
        }
        Resource::Namespace
        | Resource::CiliumNetworkPolicy
        | Resource::Secret
        | Resource::Service
        | Resource::HorizontalPodAutoscaler
        | Resource::Pod => {}
    }
}

async fn with_dependants(world: &World, desired: &Desired, rules: &Rules) -> Outcome<usize> {
    let mut primary = desired.render(rules, None);
    detail(&mut primary);
    let live = apply(world, primary).await?;
    let dependants = desired.dependants(rules, &live);
    let count = 1 + dependants.len();
    for mut dependant in dependants {
        detail(&mut dependant);
        apply(world, dependant).await?;
    }
    Ok(count)
}

/// What workloads share is as it is, but for the label.
async fn shared(world: &World) -> Outcome<usize> {
    let mut count = 0;
    for (resource, whose) in [
        (Resource::Namespace, "namespace"),
        (
            Resource::CiliumNetworkPolicy,
            "ciliumnetworkpolicy,!unkey.com/networkpolicy.id",
        ),
    ] {
        let ours = "app.kubernetes.io/managed-by=krane,app.kubernetes.io/component";
        let selector = format!("{ours}={whose}");
        let params = ListParams::default().labels(&selector);
        for found in stay(world, resource, &params).await? {
            let namespace = found.namespace().unwrap_or_default();
            let reference = ObjectRef::new(resource, namespace.as_str(), found.name_any());
            let mut body = json!({
                "apiVersion": resource.api_version(), "kind": resource.kind(),
                "metadata": { "name": found.name_any(), "labels": found.labels() },
            });
            if resource == Resource::CiliumNetworkPolicy {
                body["metadata"]["namespace"] = json!(namespace);
                body["spec"] = found.data["spec"].clone();
            }
            apply(world, Rendered::new(reference, body)).await?;
            count += 1;
        }
    }
    Ok(count)
}

/// Everything is as an earlier version left it. How many objects that are.
pub(super) async fn make(world: &World, wanted: &Wanted) -> Outcome<usize> {
    let rules = Rules {
        region: Region {
            platform: PLATFORM.into(),
            name: REGION.into(),
        },
        ..Rules::new("krane")
    };
    let mut all: Vec<Desired> = Vec::new();
    for one in &wanted.workloads {
        let state = samples::apply(one.clone());
        all.push(desired(Controller::Deployments, &state, &rules)?);
    }
    for one in &wanted.sentinels {
        let state = samples::apply_sentinel(one.clone());
        all.push(desired(Controller::Sentinels, &state, &rules)?);
    }
    for one in &wanted.policies {
        let state = samples::apply_policy(one.clone());
        all.push(desired(Controller::Cilium, &state, &rules)?);
    }
    let mut count = shared(world).await?;
    for desired in &all {
        count += with_dependants(world, desired, &rules).await?;
    }
    Ok(count)
}
