//! A real cluster that changes or fails while the adapter is in use.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::object::Resource;
use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{CallLimits, CallTimeouts, KubeCluster};
use krane_ports::{Cluster, WatchEnd, WatchEvent};
use krane_testcluster::{Component, Options};
use krane_testcontract::{Events, eventually};
use serde_json::json;

use super::{OPTIONS, connect, start, world_in};

const BARE: Options = Options {
    controllers: false,
    cilium: false,
    ..OPTIONS
};

/// D18: found without a restart, by asking for the objects; discovery knows later.
#[tokio::test]
async fn a_kind_is_missing_until_its_definition_appears() {
    let running = start(BARE).await;
    let world = world_in(&running, "a_kind_is_missing").await;
    let policy = world.policy("policy-1", &json!("8080"));
    let spec = world.spec(Resource::CiliumNetworkPolicy);
    let refusals = [
        world.refused(&policy, None).await,
        world.cluster.get(&policy.reference).await.unwrap_err(),
        world.cluster.metadata(&policy.reference).await.unwrap_err(),
        world
            .cluster
            .delete(&policy.reference, "any")
            .await
            .unwrap_err(),
        world.cluster.list(&spec).await.unwrap_err(),
        world.cluster.watch(&spec, "1").await.err().unwrap(),
    ];
    for refusal in refusals {
        assert_eq!(
            (refusal.class, refusal.code),
            (RefusalClass::KindMissing, 404),
            "{refusal}"
        );
    }
    running.cluster.install_cilium().await.unwrap();
    let listed = eventually(async || world.cluster.list(&spec).await.ok()).await;
    let watch = async || {
        let from = &listed.resource_version;
        world.cluster.watch(&spec, from).await.ok()
    };
    let mut events = Events(eventually(watch).await);
    let created = eventually(async || world.cluster.apply(&policy, None).await.ok()).await;
    assert_eq!(events.applied().await.uid, created.uid);
}

#[tokio::test]
async fn one_adapter_outlives_a_frozen_and_a_restarted_api_server() {
    let running = start(BARE).await;
    let world = world_in(&running, "one_adapter").await;
    let brief = Duration::from_secs(2);
    let timeouts = CallTimeouts::fixed(brief);
    let connection = connect(&running.kubeconfig).await;
    let cluster = Arc::new(KubeCluster::new(
        connection,
        CallLimits::default(),
        timeouts,
    ));
    let object = world.rendered("app-1");
    let spec = world.spec(Resource::ReplicaSet);
    let works = async || cluster.apply(&object, None).await.ok();
    let before = cluster.list(&spec).await.unwrap().resource_version;
    let created = eventually(works).await;

    running.cluster.pause(Component::ApiServer).unwrap();
    for refusal in [
        cluster.apply(&object, None).await.err(),
        cluster.get(&object.reference).await.err(),
    ] {
        let refusal = refusal.unwrap();
        assert_eq!(
            (refusal.class, refusal.code),
            (RefusalClass::Transient, 0),
            "{refusal}"
        );
    }
    running.cluster.resume(Component::ApiServer).unwrap();
    assert_eq!(eventually(works).await.uid, created.uid);

    let mut events = Events(cluster.watch(&spec, &before).await.unwrap());
    assert_eq!(events.applied().await.uid, created.uid);
    running.cluster.kill_api_server().unwrap();
    let ended = events.news().await;
    assert!(
        matches!(
            ended,
            WatchEvent::Ended(WatchEnd::Failed(_) | WatchEnd::Closed)
        ),
        "{ended:?}"
    );
    let refusal = cluster.get(&object.reference).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 0),
        "{refusal}"
    );

    running.cluster.start_api_server().await.unwrap();
    assert_eq!(eventually(works).await.uid, created.uid);
    // The cache of the new process begins after this version.
    let mut events = Events(cluster.watch(&spec, &before).await.unwrap());
    let ended = events.news().await;
    assert!(
        matches!(ended, WatchEvent::Ended(WatchEnd::Expired)),
        "{ended:?}"
    );
}
