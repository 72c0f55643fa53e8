//! A real API server and the one in memory, asked the same.

use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::object::{ObjectRef, Resource};
use krane_sim::cluster::{Options as SimOptions, SimCluster};
use krane_testcontract::edits::{Change, DEPLOYMENT_EXEMPT, Edit, undone};
use krane_testcontract::memory::Somebody;
use krane_testcontract::other::{Other, Refused};
use krane_testcontract::sequences::{self, Named, SENTINEL, sequence};
use krane_testcontract::twins::{Step, Twin, Uid, difference};
use krane_testharness::edits::carry_out;
use kube::api::{DeleteParams, PostParams};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::admin::KubeAdmin;
use super::{OPTIONS, Options, Running, start, world_in};

/// Nobody at work in it but the two who are compared.
const BARE: Options = Options {
    controllers: false,
    ..OPTIONS
};

static CLUSTER: OnceCell<Running> = OnceCell::const_new();

/// How many sequences, of how many steps.
const SEQUENCES: u64 = 240;
const STEPS: usize = 10;

fn refused(error: kube::Error) -> Refused {
    if let kube::Error::Api(status) = error {
        return Refused {
            code: status.code,
            message: status.message.clone(),
        };
    }
    Refused {
        code: 0,
        message: error.to_string(),
    }
}

#[async_trait]
impl Other for KubeAdmin {
    async fn read(&self, object: &ObjectRef) -> Option<Value> {
        let found = self.api(object).get_opt(&object.name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    async fn post(&self, object: &ObjectRef, body: Value) -> Result<(), Refused> {
        let body = serde_json::from_value(body).unwrap();
        let params = PostParams {
            field_manager: Some("somebody".to_owned()),
            ..PostParams::default()
        };
        let created = self.api(object).create(&params, &body).await;
        created.map(drop).map_err(refused)
    }

    async fn change(&self, object: &ObjectRef, change: Change) -> Result<(), Refused> {
        let done = carry_out(change, &self.api(object), &object.name).await;
        done.map_err(refused)
    }

    async fn remove(&self, object: &ObjectRef) -> Result<(), Refused> {
        let params = DeleteParams::background();
        let deleted = self.api(object).delete(&object.name, &params).await;
        deleted.map(drop).map_err(refused)
    }
}

/// The real one and the one in memory, with a namespace of this name in both.
async fn twins(check: &str) -> (Twin, Twin, String) {
    let running = CLUSTER.get_or_init(|| start(BARE)).await;
    let world = world_in(running, check).await;
    let real = Twin {
        cluster: world.cluster,
        other: Arc::new(KubeAdmin(running.cluster.admin_client().await.unwrap())),
    };
    let memory = memory(&world.namespace);
    (real, memory, world.namespace)
}

/// The one in memory, with a namespace of this name.
pub(super) fn memory(namespace: &str) -> Twin {
    let cluster = SimCluster::new(SimOptions {
        has_controllers: false,
        ..SimOptions::default()
    });
    for name in [namespace, SENTINEL] {
        cluster.admin().create_namespace(name).unwrap();
    }
    Twin {
        cluster: Arc::new(cluster.client()),
        other: Arc::new(Somebody(cluster.admin())),
    }
}

/// Takes the steps on both until an answer differs.
async fn compare(real: &Twin, memory: &Twin, steps: &[Named]) -> Result<(), String> {
    let mut names = Vec::new();
    for Named { name, step, wanted } in steps {
        names.push(name.as_str());
        let (one, other) = (
            real.take(step, wanted.as_ref()).await,
            memory.take(step, wanted.as_ref()).await,
        );
        if let Some(difference) = difference(&one, &other) {
            return Err(format!("after {names:#?}:\n{difference}"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn random_requests_have_the_same_outcomes_in_memory() {
    let (real, memory, namespace) = twins("random_requests").await;
    let mut failures = Vec::new();
    for seed in 0..SEQUENCES {
        let steps = sequence(seed, &namespace, STEPS);
        if let Err(failure) = compare(&real, &memory, &steps).await {
            failures.push(format!("seed {seed} {failure}"));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {SEQUENCES} differ:\n{}",
        failures.join("\n")
    );
}

/// D11a: each edit alone, then krane's way of undoing it.
#[tokio::test]
async fn every_edit_is_judged_and_undone_alike_in_memory() {
    let (real, memory, namespace) = twins("every_edit").await;
    let objects = [
        sequences::replica_set(&namespace, "rs"),
        sequences::policy(&namespace, "policy"),
        sequences::autoscaler(&namespace, "rs"),
        sequences::deployment(SENTINEL, "edited"),
        sequences::service(SENTINEL, "edited"),
        sequences::headless_service(SENTINEL, "edited"),
        sequences::disruption_budget(SENTINEL, "edited"),
        sequences::gossip_policy(SENTINEL, "edited"),
    ];
    let edits = objects.into_iter().flat_map(|rendered| {
        let mut edits = undone(&rendered);
        if rendered.reference.resource == Resource::Deployment {
            edits.extend(DEPLOYMENT_EXEMPT);
        }
        edits.into_iter().map(move |edit| (rendered.clone(), edit))
    });
    let mut failures = Vec::new();
    for (rendered, Edit { name, change }) in edits {
        let object = rendered.reference.clone();
        let step = |name: &str, step: Step| Named {
            name: name.to_owned(),
            step,
            wanted: Some(rendered.clone()),
        };
        let apply = || step("krane applies", Step::Apply(rendered.clone(), Uid::Any));
        let edit = Step::Change(object.clone(), Arc::new(change), Value::Null);
        let steps = [
            apply(),
            step(name, edit),
            apply(),
            step("krane takes over", Step::Adopt(object.clone())),
            apply(),
            step("somebody deletes", Step::Remove(object)),
        ];
        // A controller of the cluster may write between two looks of a step; it does not do so twice.
        let mut outcome = Ok(());
        for _ in 0..2 {
            outcome = compare(&real, &memory, &steps).await;
            if outcome.is_ok() {
                break;
            }
            let last = steps.last().into_iter().cloned();
            let _ = compare(&real, &memory, &last.collect::<Vec<_>>()).await;
        }
        failures.extend(outcome.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
