//! Workloads whose number of pods somebody else decides.

use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::{AutoscalingInput, DeploymentInput};
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::refusal::RefusalClass;
use serde_json::{Value, json};

use super::harness::World;
use crate::testing::cluster::Fault;
use crate::testing::{Op, input, wants};

fn scaled() -> DeploymentInput {
    DeploymentInput {
        replicas: 2,
        autoscaling: Some(AutoscalingInput {
            min_replicas: 3,
            max_replicas: 9,
            ..AutoscalingInput::default()
        }),
        ..fixed()
    }
}

fn fixed() -> DeploymentInput {
    DeploymentInput {
        replicas: 2,
        ..input("ns", "web")
    }
}

fn workload() -> ObjectRef {
    ObjectRef::new(Resource::ReplicaSet, "ns", "web")
}

fn autoscaler() -> ObjectRef {
    ObjectRef::new(Resource::HorizontalPodAutoscaler, "ns", "web")
}

fn replicas(world: &World) -> Value {
    let live = world.cluster.object(&workload());
    live.map_or(Value::Null, |live| live.value()["spec"]["replicas"].clone())
}

fn is_in_place(world: &World) -> bool {
    let owner = world.cluster.object(&workload());
    let live = world.cluster.object(&autoscaler());
    live.zip(owner)
        .is_some_and(|(live, owner)| live.is_owned_by(&owner.uid))
}

async fn running(input: DeploymentInput) -> World {
    let world = World::start().await;
    world.control_plane.push(wants(1, input));
    world.until("applied", |world| world.cursor() == 1).await;
    world
}

fn applied(world: &World, since: usize) -> Vec<Resource> {
    let of = |op: &Op| match op {
        Op::Apply(reference) => Some(reference.resource),
        Op::Adopt(_) | Op::Delete(_) | Op::Metadata(_) | Op::Get(_) => None,
    };
    world
        .cluster
        .log()
        .iter()
        .skip(since)
        .filter_map(of)
        .collect()
}

/// D14: what is owned needs the uid of its owner.
#[tokio::test(start_paused = true)]
async fn the_autoscaler_follows_its_workload_and_is_owned_by_it() {
    let mut world = running(scaled()).await;
    assert_eq!(replicas(&world), json!(3));
    assert!(is_in_place(&world));
    let order = [Resource::ReplicaSet, Resource::HorizontalPodAutoscaler];
    assert!(applied(&world, 0).ends_with(&order));
    let writes = world.cluster.writes();
    world.reboot().await;
    world.until("replayed", |world| world.cursor() == 1).await;
    world.pass(120).await;
    assert_eq!(world.cluster.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn what_the_autoscaler_decided_outlives_passes_changes_and_restarts() {
    let mut world = running(scaled()).await;
    world.cluster.scale(&workload(), 7);
    let writes = world.cluster.writes();
    world.pass(180).await;
    world.reboot().await;
    world.until("replayed", |world| world.cursor() == 1).await;
    assert_eq!(
        (replicas(&world), world.cluster.writes()),
        (json!(7), writes)
    );
    world.control_plane.push(wants(
        2,
        DeploymentInput {
            image: "registry.example/app:2".to_owned(),
            ..scaled()
        },
    ));
    world.until("applied", |world| world.cursor() == 2).await;
    assert_eq!(replicas(&world), json!(7));
    assert_eq!(world.cluster.writes(), writes + 1);
}

/// D11c: a number that krane owns and leaves out would fall to 1; one that it repeats
/// from a stale view would undo what the autoscaler just did.
#[tokio::test(start_paused = true)]
async fn a_policy_takes_no_pods_away_and_a_stale_number_is_not_written() {
    let world = running(DeploymentInput {
        replicas: 6,
        ..fixed()
    })
    .await;
    let since = world.cluster.log().len();
    world.control_plane.push(wants(2, scaled()));
    world.until("applied", |world| world.cursor() == 2).await;
    assert_eq!(replicas(&world), json!(6));
    assert_eq!(applied(&world, since), [Resource::HorizontalPodAutoscaler]);

    // krane still owns the number when it changes the workload, and the autoscaler is faster.
    let mut is_first = true;
    world.cluster.fault(move |op| {
        let is_workload = *op == Op::Apply(workload());
        (is_workload && std::mem::take(&mut is_first)).then(|| Fault::Scale(workload(), 8))
    });
    world.control_plane.push(wants(
        3,
        DeploymentInput {
            image: "registry.example/app:2".to_owned(),
            ..scaled()
        },
    ));
    world.until("applied", |world| world.cursor() == 3).await;
    assert_eq!(replicas(&world), json!(8));
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_the_autoscaler_goes_first_and_the_number_is_enforced() {
    let world = running(scaled()).await;
    world.cluster.scale(&workload(), 7);
    let since = world.cluster.log().len();
    world.control_plane.push(wants(2, fixed()));
    world.until("applied", |world| world.cursor() == 2).await;
    assert_eq!(replicas(&world), json!(2));
    assert!(world.cluster.object(&autoscaler()).is_none());
    let log = world.cluster.log();
    let writes = log
        .iter()
        .skip(since)
        .filter(|op| matches!(op, Op::Apply(_) | Op::Delete(_)));
    let expected = [Op::Delete(autoscaler()), Op::Apply(workload())];
    assert_eq!(writes.cloned().collect::<Vec<_>>(), expected);
}

/// The autoscaler that krane would render for the live workload.
fn rendered(world: &World) -> Rendered {
    let owner = world.cluster.object(&workload()).expect("it is there");
    let Ok(Change::Apply(desired)) = wants(1, scaled()).change else {
        panic!("an apply")
    };
    desired.dependants(&Rules::default(), &owner).remove(0)
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_was_deleted_or_edited_is_put_back() {
    let world = running(scaled()).await;
    world.cluster.remove(&autoscaler());
    world.until("it is there again", is_in_place).await;
    let edit = |body: &mut Value| body["spec"]["maxReplicas"] = json!(100);
    world.cluster.put(&rendered(&world), edit);
    let is_undone = |world: &World| {
        let live = world.cluster.object(&autoscaler());
        live.is_some_and(|live| live.value()["spec"]["maxReplicas"] == 9)
    };
    let time = world.until("the edit is undone", is_undone).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// D11c: by label, owner and UID.
#[tokio::test(start_paused = true)]
async fn only_an_autoscaler_of_ours_that_hangs_on_this_workload_is_deleted() {
    let world = running(fixed()).await;
    let unlabelled = |body: &mut Value| body["metadata"]["labels"] = json!({});
    let of_another = |body: &mut Value| {
        body["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    };
    let held = |body: &mut Value| {
        body["metadata"]["annotations"]["krane.unkey.com/hold"] = json!("2027-01-15T09:00:00Z");
    };
    let edits: [fn(&mut Value); 3] = [unlabelled, of_another, held];
    for edit in edits {
        world.cluster.put(&rendered(&world), edit);
        world.pass(60).await;
        let live = world.cluster.object(&autoscaler());
        assert!(live.is_some(), "it is left alone");
        world.cluster.remove(&autoscaler());
    }
    world.cluster.put(&rendered(&world), |_| {});
    let is_gone = |world: &World| world.cluster.object(&autoscaler()).is_none();
    world.until("it is deleted", is_gone).await;
}

/// A workload that cannot have its autoscaler runs, is reported and does not lose what it has.
#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_is_refused_holds_up_neither_workload_nor_report() {
    let world = World::start().await;
    world.cluster.fault(|op| {
        let is_autoscaler = *op == Op::Apply(autoscaler());
        is_autoscaler.then_some(Fault::Refuse(RefusalClass::Configuration))
    });
    world.control_plane.push(wants(1, scaled()));
    let is_told = |world: &World| world.control_plane.last_report("web").is_some();
    world.until("it is there and told", is_told).await;
    assert_eq!(replicas(&world), json!(3));
    assert_eq!(world.cursor(), 0);
    world.cluster.heal();
    world.until("it has its autoscaler", is_in_place).await;
    world.until("applied", |world| world.cursor() == 1).await;
}

/// Somebody took our label away: krane sees it as gone, and must not start it over.
#[tokio::test(start_paused = true)]
async fn a_workload_that_lost_its_label_gets_it_back_and_keeps_its_pods() {
    let world = running(scaled()).await;
    world.cluster.scale_and_unlabel(&workload(), 7);
    let is_ours = |world: &World| {
        let live = world.cluster.object(&workload());
        live.is_some_and(|live| live.is_ours())
    };
    world.until("it has its label", is_ours).await;
    assert_eq!(replicas(&world), json!(7));
}
