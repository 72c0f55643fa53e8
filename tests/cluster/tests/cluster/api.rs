//! Schemas, rights, tokens and the audit log.

use std::path::Path;

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    core::v1::{Pod, Secret},
};
use krane_testcluster::{AuditMark, KRANE_USER};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::support::{eventually, facts, name, namespace, pods, replica_set, shared};

#[tokio::test]
async fn cilium_policies_are_checked_by_their_schema() {
    let (_, client) = shared().await;
    namespace(&client, "cilium").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "cilium.io",
        "v2",
        "CiliumNetworkPolicy",
    ));
    let api: Api<DynamicObject> = Api::namespaced_with(client, "cilium", &resource);
    let apply = async |name: &str, spec: Value| {
        let object = json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": name}, "spec": spec});
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(&object))
            .await
    };
    let ingress = json!([{"toPorts": [{"ports": [{"port": "8080", "protocol": "TCP"}]}]}]);
    apply(
        "good",
        json!({"endpointSelector": {"matchLabels": {"a": "b"}}, "ingress": ingress}),
    )
    .await
    .unwrap();
    let refused = apply("bad", json!({"endpointSelector": "everything"}))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("endpointSelector"),
        "{refused}"
    );
}

#[tokio::test]
async fn krane_has_the_rights_of_the_chart_and_the_audit_log_shows_its_writes() {
    let (cluster, admin) = shared().await;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/krane/files/rbac.yaml");
    cluster.install(&chart).await.unwrap();
    let client = cluster.service_account_client().await.unwrap();
    let mark = cluster.audit_mark().unwrap();
    namespace(&client, "from-krane").await;
    Api::<Pod>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    assert!(
        Api::<Secret>::namespaced(client.clone(), "sentinel")
            .get("database")
            .await
            .is_err()
    );
    assert!(
        Api::<Secret>::namespaced(admin, "sentinel")
            .get("database")
            .await
            .is_ok()
    );

    let entries = eventually("the audit lines", async || {
        let entries = cluster.requests_by(KRANE_USER, mark).unwrap();
        (entries.len() == 3).then_some(entries)
    })
    .await;
    let seen: Vec<_> = entries
        .iter()
        .map(|e| (e.verb.as_str(), e.resource.as_str(), e.code))
        .collect();
    assert_eq!(
        seen,
        [
            ("create", "namespaces", 201),
            ("list", "pods", 200),
            ("get", "secrets", 403)
        ]
    );
    let writes = cluster.writes_by(KRANE_USER, mark).unwrap();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].name, "from-krane");
    assert!(
        !cluster
            .requests_by(KRANE_USER, AuditMark::START)
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn pod_tokens_are_bound_to_their_pod() {
    let (cluster, client) = shared().await;
    namespace(&client, "token").await;
    replica_set(&client, "token", "web", 1, "registry.example/app:1").await;
    let pod = eventually("a pod", async || {
        pods(&client, "token", "web")
            .await
            .into_iter()
            .next()
            .filter(|pod| facts(pod).2)
    })
    .await;
    let token = cluster
        .pod_token("token", &name(&pod), &["krane"])
        .await
        .unwrap();
    let review = async |token: &str, audience: &str| {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: Some(vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        Api::<TokenReview>::all(client.clone())
            .create(&PostParams::default(), &review)
            .await
            .unwrap()
            .status
            .unwrap()
    };
    let status = review(&token, "krane").await;
    assert_eq!(status.authenticated, Some(true), "{status:?}");
    let extra = status.user.unwrap().extra.unwrap();
    assert_eq!(
        extra["authentication.kubernetes.io/pod-uid"],
        [pod.metadata.uid.clone().unwrap()]
    );
    assert_ne!(
        review(&token, "somebody else").await.authenticated,
        Some(true)
    );
}
