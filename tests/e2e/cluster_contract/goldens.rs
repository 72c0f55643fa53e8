//! What krane renders of sentinels and policies is taken by a real API server, and stays as it is.

use std::collections::BTreeMap;

use krane_domain::drift::{self, Decision};
use krane_domain::kinds::cilium_network_policy::{self, PolicyInput};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::kinds::{Desired, ProbePaths, Region, Rules};
use krane_domain::object::{LiveObject, Rendered};
use krane_ports::{Cluster, Deletion};
use serde_json::{Value, json};

use super::world;

fn rules() -> Rules {
    Rules {
        region: Region {
            platform: "aws".into(),
            name: "us-east-1".into(),
        },
        ..Rules::default()
    }
}

/// Applied, it is as rendered; applied again, nothing changes.
async fn is_taken(cluster: &dyn Cluster, rendered: &Rendered) -> LiveObject {
    let what = &rendered.reference;
    let first = cluster.apply(rendered, None).await;
    let first = first.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
    let live = cluster.get(what).await.unwrap().unwrap();
    let decision = drift::decide(rendered, Some(&live), None, 0);
    assert_eq!(decision, Decision::InPlace, "{what}");
    let again = cluster.apply(rendered, Some(&first.uid)).await.unwrap();
    assert_eq!(again.uid, first.uid, "{what}");
    let fields = |live: &LiveObject| {
        let mut value: Value = serde_json::from_str(&live.content).unwrap();
        // Whoever controls it may have said something meanwhile.
        for part in ["status", "metadata"] {
            value[part] = Value::Null;
        }
        value
    };
    assert_eq!(fields(&again), fields(&first), "{what}");
    again
}

fn sentinels() -> Vec<SentinelInput> {
    let full = SentinelInput {
        k8s_name: "golden-full".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        app_id: "app_1".to_owned(),
        environment_id: "env_1".to_owned(),
        sentinel_id: "sen_1".to_owned(),
        image: "ghcr.io/unkeyed/sentinel:v1".to_owned(),
        replicas: 3,
        cpu_millicores: 1000,
        memory_mib: 2048,
    };
    let small = SentinelInput {
        k8s_name: "golden-small".to_owned(),
        app_id: String::new(),
        sentinel_id: "sen_2".to_owned(),
        replicas: 0,
        cpu_millicores: 1,
        memory_mib: 1,
        ..full.clone()
    };
    // As long as a name may be: the gossip objects add to it.
    let long = SentinelInput {
        k8s_name: format!("golden-{}", "x".repeat(45)),
        sentinel_id: "sen_3".to_owned(),
        replicas: 1,
        ..full.clone()
    };
    vec![full, small, long]
}

/// kubernetes/kubernetes#105610, #39188, #118725 (B21): of the two gossip ports, one number with two protocols, none
/// is lost by the second apply.
#[tokio::test]
async fn everything_of_a_sentinel_is_taken_and_stays() {
    let world = world("everything_of_a_sentinel").await;
    let mut made = BTreeMap::new();
    for probe_paths in [ProbePaths::Legacy, ProbePaths::Split] {
        let rules = Rules {
            probe_paths,
            ..rules()
        };
        for input in sentinels() {
            let desired = Desired::Sentinel(Box::new(sentinel::validate(input, &rules).unwrap()));
            let rendered = desired.render(&rules, None);
            let live = is_taken(&*world.cluster, &rendered).await;
            let others = desired.dependants(&rules, &live);
            assert_eq!(others.len(), 4);
            for rendered in others {
                let live = is_taken(&*world.cluster, &rendered).await;
                made.insert(live.reference.clone(), live);
            }
            made.insert(live.reference.clone(), live);
        }
    }
    for live in made.values() {
        is_gone_once_deleted(&*world.cluster, live).await;
    }
}

/// The answers to deletes differ from kind to kind: some are a status, some the object as it was.
async fn is_gone_once_deleted(cluster: &dyn Cluster, live: &LiveObject) {
    for _ in 0..2 {
        let deletion = cluster.delete(&live.reference, &live.uid).await;
        assert_eq!(deletion.unwrap(), Deletion::Gone, "{}", live.reference);
    }
}

/// A policy of the control plane that lets sentinels reach a workload.
fn ingress(namespace: &str) -> Value {
    json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
        "metadata": {
            "name": "theirs", "namespace": "theirs", "labels": {"theirs": "theirs"},
            "annotations": {"example.com/why": "because"}, "ownerReferences": [],
        },
        "spec": {
            "endpointSelector": {"matchLabels": {
                "app.kubernetes.io/managed-by": "krane", "unkey.com/deployment.id": "d_1",
            }},
            "ingress": [{
                "fromEndpoints": [{"matchLabels": {
                    "k8s:io.kubernetes.pod.namespace": "sentinel",
                    "unkey.com/workspace.id": namespace, "unkey.com/environment.id": "env_1",
                }}],
                "toPorts": [{"ports": [{"port": "8080", "protocol": "TCP"}]}],
            }],
        },
        "status": {"conditions": []},
    })
}

/// One with everything that a rule may have.
fn varied() -> Value {
    json!({"specs": [
        {
            "description": "", "endpointSelector": {},
            "enableDefaultDeny": {"ingress": true, "egress": false},
            "ingress": [], "ingressDeny": [{"fromEntities": ["world"]}],
        },
        {
            "endpointSelector": {"matchExpressions": [
                {"key": "app", "operator": "In", "values": ["a", "b"]},
            ]},
            "egress": [
                {
                    "toFQDNs": [{"matchPattern": "*.example.com"}],
                    "toPorts": [{"ports": [{"port": "443", "endPort": 444, "protocol": "TCP"}]}],
                },
                {
                    "toEndpoints": [{"matchLabels": {"k8s-app": "kube-dns"}}],
                    "toPorts": [{
                        "ports": [{"port": "53", "protocol": "ANY"}],
                        "rules": {"dns": [{"matchPattern": "*"}]},
                    }],
                },
                {"toCIDRSet": [{"cidr": "10.0.0.0/8", "except": ["10.96.0.0/12"]}]},
                {"icmps": [{"fields": [{"type": 8, "family": "IPv4"}]}]},
            ],
        },
    ]})
}

#[tokio::test]
async fn policies_of_the_control_plane_are_taken_and_stay() {
    let world = world("policies_of_the_control_plane").await;
    let rules = rules();
    let all = [
        (
            &*world.namespace,
            "sentinel-ingress-to-web",
            ingress(&world.namespace),
        ),
        ("sentinel", "sentinel-egress-to-web", ingress("ws_1")),
        (&*world.namespace, "varied", varied()),
    ];
    for (namespace, name, policy) in all {
        let input = PolicyInput {
            k8s_namespace: namespace.to_owned(),
            k8s_name: name.to_owned(),
            cilium_network_policy_id: format!("net_{name}"),
            policy: policy.to_string().into_bytes(),
        };
        let desired = cilium_network_policy::validate(input, &rules).unwrap();
        let desired = Desired::CiliumNetworkPolicy(Box::new(desired));
        is_taken(&*world.cluster, &desired.render(&rules, None)).await;
    }
}

/// Strictly: what is misspelt would be a policy that does nothing.
#[tokio::test]
async fn a_misspelt_policy_is_refused_for_good() {
    use krane_domain::refusal::RefusalClass;
    let world = world("a_misspelt_policy").await;
    let rules = rules();
    let mut odd = Vec::new();
    for (path, value) in [
        ("/spec/ingres", json!([])),
        ("/spec/ingress/0/fromEndpoint", json!([])),
        ("/spec/ingress/0/toPorts/0/ports/0/protokol", json!("TCP")),
        ("/spec/ingress/0/toPorts/0/ports/0/protocol", json!("QUIC")),
        ("/spec/ingress/0/fromEntities", json!(["everybody"])),
        ("/spec/endpointSelector", json!([])),
    ] {
        let mut policy = ingress("ws_1");
        let (parent, field) = path.rsplit_once('/').unwrap();
        policy.pointer_mut(parent).unwrap()[field] = value;
        odd.push(policy);
    }
    for (number, policy) in odd.into_iter().enumerate() {
        let input = PolicyInput {
            k8s_namespace: world.namespace.clone(),
            k8s_name: format!("odd-{number}"),
            cilium_network_policy_id: format!("net_{number}"),
            policy: policy.to_string().into_bytes(),
        };
        let desired = cilium_network_policy::validate(input, &rules).unwrap();
        let desired = Desired::CiliumNetworkPolicy(Box::new(desired));
        let rendered = desired.render(&rules, None);
        let refusal = world.cluster.apply(&rendered, None).await.unwrap_err();
        assert_eq!(
            refusal.class,
            RefusalClass::Permanent,
            "{number}: {refusal}"
        );
        let in_memory = super::twins::memory(&world.namespace);
        let same = in_memory.cluster.apply(&rendered, None).await.unwrap_err();
        assert_eq!(
            (same.class, same.code),
            (refusal.class, refusal.code),
            "{number}: {same}"
        );
    }
}
