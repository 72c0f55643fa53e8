//! What holds for deployments holds for sentinels and policies.

use std::time::Duration;

use krane_domain::desired::{Change, State};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::AutoscalingInput;
use krane_domain::kinds::{Desired, Rules};
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::report::Report;
use krane_ports::Answer;
use serde_json::json;

use super::harness::World;
use crate::testing::cluster::Fault;
use crate::testing::{Op, input, wants, wants_policy, wants_sentinel};

fn wanted(of: Controller, version: u64, name: &str) -> State {
    match of {
        Controller::Deployments => wants(version, input("ns", name)),
        Controller::Sentinels => wants_sentinel(version, name),
        Controller::Cilium => wants_policy(version, "ns", name),
    }
}

fn desired(state: &State) -> &Desired {
    match &state.change {
        Ok(Change::Apply(desired)) => desired,
        other => panic!("not wanted: {other:?}"),
    }
}

fn is_there(world: &World, reference: &ObjectRef) -> bool {
    world.cluster.object(reference).is_some()
}

/// unkeyed/unkey ce0572d7b7, PR #4991 (A38): NOT_FOUND was an error for the log, and what nobody
/// wanted any more ran on. It is the answer, asked for twice, and no failure.
#[tokio::test(start_paused = true)]
async fn what_the_control_plane_does_not_know_goes_whatever_its_kind() {
    for of in Controller::ALL {
        let states = ["gone", "kept"].map(|name| wanted(of, 1, name));
        let [gone, kept] = states.each_ref().map(desired);
        let id = gone.id();
        let states = [states[0].clone(), wanted(of, 2, "kept")];
        let world = World::that_applied(of, &states).await;
        world.control_plane.answer(id, Answer::NotFound);
        world
            .until("deleted", |world| !is_there(world, &gone.reference()))
            .await;
        let asked = world.control_plane.asked(id);
        let [first, second] = asked[..] else {
            panic!("in the first pass: {asked:?}");
        };
        assert!(second - first >= Duration::from_secs(5));
        world.pass(130).await;
        assert!(is_there(&world, &kept.reference()));
        for live in world.cluster.objects() {
            assert!(
                !live.reference.name.starts_with("gone"),
                "{}",
                live.reference
            );
        }
        let failed = world.memory(|memory| memory.last_resync.as_ref().map(|pass| pass.failed));
        assert_eq!(failed, Some(0));
        match world.control_plane.last_report("gone") {
            Some(Report::Gone { .. }) => assert!(of.has_reports()),
            None => assert!(!of.has_reports(), "{of:?}"),
            other => panic!("{other:?}"),
        }
    }
}

/// unkeyed/unkey 34b78c9fcd, PR #4922 (A51), 664c27e965, PR #4942 (A52): passes saw the policies of
/// one namespace only, or looked for their ids under another label, and skipped them all.
#[tokio::test(start_paused = true)]
async fn passes_ask_about_the_policies_of_all_namespaces_by_their_ids() {
    let states = [wants_policy(1, "ns1", "one"), wants_policy(2, "ns2", "two")];
    let world = World::that_applied(Controller::Cilium, &states).await;
    let rendered = desired(&states[0]).render(&Rules::default(), None);
    let ingress = |world: &World| {
        let live = world.cluster.object(&rendered.reference);
        live.map(|live| live.value()["spec"]["ingress"].clone())
    };
    world.cluster.put(&rendered, |body| {
        body["spec"]["ingress"] = json!([{ "fromEntities": ["all"] }]);
    });
    world
        .until("the edit is undone", |world| {
            ingress(world) == Some(json!([{ "fromEndpoints": [{}] }]))
        })
        .await;
    world.control_plane.answer("net_two", Answer::NotFound);
    let two = desired(&states[1]).reference();
    world.until("gone", |world| !is_there(world, &two)).await;
    assert!(!world.control_plane.asked("net_one").is_empty());
    assert!(is_there(&world, &rendered.reference));
}

/// The owners that an object names, each with what it must be.
fn owners(world: &World) -> Vec<(String, Option<bool>)> {
    let mut all = Vec::new();
    for live in world.cluster.objects() {
        let body = live.value();
        let named = body["metadata"]["ownerReferences"].as_array().cloned();
        for owner in named.into_iter().flatten() {
            let (kind, name) = (&owner["kind"], owner["name"].as_str().unwrap_or_default());
            let resource = [Resource::Deployment, Resource::ReplicaSet]
                .into_iter()
                .find(|resource| kind == resource.kind());
            let found = resource.and_then(|resource| {
                let namespace = live.reference.namespace.clone();
                let reference = ObjectRef::new(resource, namespace, name);
                world.cluster.object(&reference)
            });
            let is_right = found.map(|found| {
                owner["uid"] == *found.uid
                    && owner["apiVersion"] == found.reference.resource.api_version()
            });
            all.push((live.reference.to_string(), is_right));
        }
    }
    all
}

/// kubernetes/kubernetes#65200, crossplane/crossplane#895, banzaicloud/koperator#186 (B19): the
/// garbage collector deletes whatever names an owner that is none. Here the owner is replaced
/// between its own apply and that of the first object that names it.
#[tokio::test(start_paused = true)]
async fn owners_are_named_by_the_uid_they_have_now() {
    let mut scaled = input("ns", "web");
    scaled.autoscaling = Some(AutoscalingInput {
        min_replicas: 1,
        max_replicas: 3,
        ..AutoscalingInput::default()
    });
    for (of, state, first, owned) in [
        (
            Controller::Sentinels,
            wants_sentinel(1, "front"),
            Resource::Service,
            2,
        ),
        (
            Controller::Deployments,
            wants(1, scaled),
            Resource::HorizontalPodAutoscaler,
            1,
        ),
    ] {
        let world = World::of(of).await;
        let owner = desired(&state).reference();
        let replaced = owner.clone();
        let mut is_done = false;
        world.cluster.fault(move |op| {
            let is_first = matches!(op, Op::Apply(reference) if reference.resource == first);
            let is_now = is_first && !is_done;
            is_done |= is_first;
            is_now.then(|| Fault::Replace(replaced.clone()))
        });
        world.control_plane.push(state);
        let are_right = |world: &World| {
            let owners = owners(world);
            owners.len() == owned && owners.iter().all(|(_, is_right)| *is_right == Some(true))
        };
        world
            .until("all name the one that is there", are_right)
            .await;
        world.pass(130).await;
        assert!(are_right(&world), "{:?}", owners(&world));
        assert!(is_there(&world, &owner));
    }
}

/// fluxcd/flux2#2386 (B29): what cannot be changed is refused at every try. Of sentinels the
/// selector, within one environment, and whether a Service is headless.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_made_anew_and_not_tried_again_and_again() {
    let state = wants_sentinel(1, "front");
    let world = World::that_applied(Controller::Sentinels, std::slice::from_ref(&state)).await;
    let rendered = desired(&state).render(&Rules::default(), None);
    let gossip = ObjectRef::new(Resource::Service, "sentinel", "front-gossip-lan");
    let before = [&rendered.reference, &gossip].map(|it| world.cluster.object(it));
    let [Some(deployment), Some(headless)] = before else {
        panic!("both are there");
    };
    world.cluster.put(&rendered, |body| {
        body["spec"]["selector"]["matchLabels"]["unkey.com/sentinel.id"] = json!("s_other");
    });
    let mut spec = headless.value()["spec"].clone();
    spec["clusterIP"] = json!("10.0.0.9");
    let body = json!({
        "apiVersion": "v1", "kind": "Service", "spec": spec,
        "metadata": {
            "name": &*gossip.name, "namespace": &*gossip.namespace,
            "labels": headless.value()["metadata"]["labels"],
        },
    });
    world
        .cluster
        .put(&Rendered::new(gossip.clone(), body), |_| {});
    let writes = world.cluster.writes();
    let are_new = |world: &World| {
        let now = [&rendered.reference, &gossip].map(|it| world.cluster.object(it));
        let [Some(other), Some(service)] = now else {
            return false;
        };
        other.uid != deployment.uid
            && service.uid != headless.uid
            && service.value()["spec"]["clusterIP"] == "None"
    };
    world.until("made anew", are_new).await;
    world.pass(600).await;
    let writes = world.cluster.writes() - writes;
    assert!(writes <= 8, "{writes} writes in ten minutes");
}

/// unkeyed/unkey 36b5384c3a (A30): an empty id claims or wipes what it does not mean.
#[tokio::test(start_paused = true)]
async fn what_has_no_id_is_left_alone_and_named_to_nobody() {
    for of in Controller::ALL {
        let good = wanted(of, 1, "good");
        let world = World::that_applied(of, std::slice::from_ref(&good)).await;
        for (name, id) in [("no-id", None), ("empty-id", Some(""))] {
            let bad = wanted(of, 2, name);
            let label = match of {
                Controller::Deployments => "unkey.com/deployment.id",
                Controller::Sentinels => "unkey.com/sentinel.id",
                Controller::Cilium => "unkey.com/networkpolicy.id",
            };
            let rendered = desired(&bad).render(&Rules::default(), None);
            world.cluster.put(&rendered, |body| {
                let labels = body["metadata"]["labels"].as_object_mut();
                let labels = labels.expect("it has labels");
                labels.remove(label);
                labels.extend(id.map(|id| (label.to_owned(), json!(id))));
            });
        }
        let writes = world.cluster.writes();
        world.pass(200).await;
        assert_eq!(world.cluster.writes(), writes, "{of:?}");
        assert!(world.control_plane.asked("").is_empty());
        for name in ["no-id", "empty-id"] {
            assert_eq!(world.control_plane.last_report(name), None, "{of:?}");
            let key = ObjectKey::new(desired(&good).key().namespace.clone(), name);
            let trouble = world.memory(|memory| memory.backlog.state(&key).cloned());
            assert!(trouble.is_none());
        }
        assert!(!world.control_plane.asked(desired(&good).id()).is_empty());
    }
}
