//! Refusals that only a real API server gives, and what they are classed as.

use std::fs;

use futures::FutureExt;
use futures::StreamExt;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ResourceQuota;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{Rendered, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_kubernetes::{CallLimits, KubeCluster};
use krane_ports::Cluster;
use krane_testcontract::{World, eventually, merge};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{connect, patient, running, world};

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

async fn admin() -> kube::Client {
    running().await.cluster.admin_client().await.unwrap()
}

/// Creates one object after another until one is refused.
async fn first_refusal(world: &World) -> Refusal {
    let mut number = 0;
    eventually(async || {
        number += 1;
        world
            .cluster
            .apply(&world.rendered(&format!("app-{number}")), None)
            .await
            .err()
    })
    .await
}

#[tokio::test]
async fn credentials_nobody_knows_are_unauthenticated() {
    let known = &running().await.kubeconfig;
    let text = fs::read_to_string(known).unwrap();
    let token = text
        .split("token")
        .nth(1)
        .unwrap()
        .trim_matches([':', ' ', '"', '\n']);
    let token = token.split(['"', '\n']).next().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text.replace(token, "nobody")).unwrap();
    let connection = connect(file.path()).await;
    let cluster = KubeCluster::new(
        std::sync::Arc::clone(&connection),
        CallLimits::default(),
        patient(),
    );
    let world = world("credentials_nobody_knows").await;
    let refusal = cluster
        .apply(&world.rendered("app-1"), None)
        .await
        .unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Unauthenticated, 401)
    );
    assert_eq!(connection.unauthorized_total(), 2);
}

#[tokio::test]
async fn a_missing_right_is_a_matter_of_configuration() {
    let world = world("a_missing_right").await;
    let mut object = world.rendered("another-secret");
    object.reference = world.reference(Resource::Secret, "another-secret");
    object.body = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "another-secret", "namespace": world.namespace},
    });
    let everything = WatchSpec {
        resource: Resource::Secret,
        namespace: None,
        label_selector: String::new(),
        field_selector: String::new(),
    };
    let refusals = [
        world.refused(&object, None).await,
        world.cluster.get(&object.reference).await.unwrap_err(),
        world.cluster.metadata(&object.reference).await.unwrap_err(),
        world
            .cluster
            .delete(&object.reference, "any")
            .await
            .unwrap_err(),
        world.cluster.list(&everything).await.unwrap_err(),
        world.cluster.watch(&everything, "1").await.err().unwrap(),
    ];
    for refusal in refusals {
        assert_eq!(
            (refusal.class, refusal.code),
            (RefusalClass::Configuration, 403)
        );
        assert!(refusal.message.contains("secrets"), "{refusal}");
    }
}

#[tokio::test]
async fn a_quota_is_worth_waiting_for() {
    let world = world("a_quota").await;
    let quota: ResourceQuota = parse(json!({
        "metadata": {"name": "none"}, "spec": {"hard": {"count/replicasets.apps": "0"}},
    }));
    let quotas = Api::namespaced(admin().await, &world.namespace);
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    let refusal = first_refusal(&world).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 403)
    );
    assert!(refusal.message.contains("exceeded quota"), "{refusal}");
}

#[tokio::test]
async fn an_admission_policy_is_a_matter_of_configuration() {
    let world = world("an_admission_policy").await;
    let policy: ValidatingAdmissionPolicy = parse(json!({
        "metadata": {"name": "contract"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["replicasets"],
            }]},
            "validations": [{"expression": "false", "message": "not here"}],
        },
    }));
    let binding: ValidatingAdmissionPolicyBinding = parse(json!({
        "metadata": {"name": "contract"},
        "spec": {
            "policyName": "contract", "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {
                "matchLabels": {"kubernetes.io/metadata.name": world.namespace},
            }},
        },
    }));
    let client = admin().await;
    Api::all(client.clone())
        .create(&PostParams::default(), &policy)
        .await
        .unwrap();
    Api::all(client)
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
    let refusal = first_refusal(&world).await;
    assert_eq!(refusal.class, RefusalClass::Configuration, "{refusal}");
    assert!(refusal.message.contains("not here"), "{refusal}");
}

#[tokio::test]
async fn an_object_too_big_to_store_is_permanent() {
    let world = world("an_object_too_big").await;
    let big = |bytes: usize| -> Rendered {
        let mut object = world.rendered("app-1");
        let env = json!([{"name": "BIG", "value": "x".repeat(bytes)}]);
        merge(
            &mut object.body,
            "/spec/template/spec/containers/0/env",
            env,
        );
        object
    };
    for (bytes, code) in [(1_600_000, 500), (2_500_000, 500), (3 << 20, 0)] {
        let refusal = world.refused(&big(bytes), None).await;
        assert_eq!(
            (refusal.class, refusal.code),
            (RefusalClass::Permanent, code),
            "{refusal}"
        );
    }
}

/// After a restore of etcd: the server neither refuses nor tells anything, so silence must be
/// noticed by whoever watches.
#[tokio::test]
async fn a_watch_from_the_future_opens_and_stays_silent() {
    let world = world("a_watch_from_the_future").await;
    let spec = world.spec(Resource::ReplicaSet);
    let now = world.cluster.list(&spec).await.unwrap().resource_version;
    let future = (now.parse::<u64>().unwrap() + 1_000_000).to_string();
    let mut silent = world.watch(Resource::ReplicaSet, &future).await;
    let mut events = world.watch(Resource::ReplicaSet, &now).await;
    let created = world.apply(&world.rendered("app-1")).await;
    assert_eq!(events.applied().await.uid, created.uid);
    assert!(silent.0.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_version_that_is_no_number_is_refused_at_the_start() {
    let world = world("a_version_that_is_no_number").await;
    let spec = world.spec(Resource::ReplicaSet);
    let refusal = world.cluster.watch(&spec, "yesterday").await.err().unwrap();
    assert_ne!(refusal.code, 0, "{refusal}");
}
