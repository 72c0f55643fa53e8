use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PolicyInput, validate, validate_delete};
use crate::kinds::{Desired, Keep, Rules, WantedKind};
use crate::testing::fields_of;

/// As the control plane sends one for each deployment.
pub(super) fn policy() -> Value {
    json!({
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {
            "name": "another-name",
            "namespace": "another-namespace",
            "creationTimestamp": null,
            "uid": "u", "resourceVersion": "7", "generation": 3,
            "labels": { "theirs": "x", "unkey.com/environment.id": "env_stolen" },
            "annotations": { "note": "theirs", "krane.unkey.com/hold": "2099-01-01T00:00:00Z" },
            "finalizers": ["never/gone"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }],
            "managedFields": [],
        },
        "spec": {
            "endpointSelector": { "matchLabels": { "unkey.com/deployment.id": "d_1" } },
            "ingress": [{
                "fromEndpoints": [{ "matchLabels": { "unkey.com/environment.id": "env_1" } }],
                "toPorts": [{ "ports": [{ "port": "8080", "protocol": "TCP" }] }],
            }],
        },
        "status": {},
    })
}

pub(super) fn input(policy: &Value) -> PolicyInput {
    PolicyInput {
        k8s_namespace: "abcdefgh".to_owned(),
        k8s_name: "sentinel-ingress-to-dep-1".to_owned(),
        cilium_network_policy_id: "net_1".to_owned(),
        policy: policy.to_string().into_bytes(),
    }
}

pub(super) fn rules() -> Rules {
    Rules::new("unkey")
}

fn body(policy: &Value) -> Value {
    let desired = validate(input(policy), &rules()).unwrap_or_else(|invalid| panic!("{invalid}"));
    desired.render(&rules(), None, Keep::Nothing).body
}

/// What is wrong with the field `policy`; "" when nothing is.
fn problem(policy: impl Into<Vec<u8>>) -> String {
    let input = PolicyInput {
        policy: policy.into(),
        ..input(&json!({}))
    };
    match validate(input, &rules()) {
        Ok(_) => String::new(),
        Err(invalid) => {
            assert_eq!(invalid.field, "policy");
            invalid.problem
        }
    }
}

#[test]
fn golden() {
    insta::assert_json_snapshot!("policy", body(&policy()));
}

/// unkeyed/unkey 86688de608, PR #4922 (A50): names, namespace and labels are krane's to give.
#[test]
fn identity_is_forced_and_nothing_else_of_the_metadata_gets_through() {
    let body = body(&policy());
    let expected = json!({
        "name": "sentinel-ingress-to-dep-1",
        "namespace": "abcdefgh",
        "labels": {
            "app.kubernetes.io/managed-by": "krane",
            "app.kubernetes.io/component": "ciliumnetworkpolicy",
            "unkey.com/networkpolicy.id": "net_1",
        },
        "annotations": { "note": "theirs", "krane.unkey.com/renderer": "2" },
    });
    assert_eq!(body["metadata"], expected);
    assert_eq!(body.get("status"), None);
    assert_eq!(body["spec"], policy()["spec"]);
    let bare = json!({ "spec": policy()["spec"] });
    assert_eq!(self::body(&bare)["kind"], "CiliumNetworkPolicy");
    assert_eq!(self::body(&bare)["apiVersion"], "cilium.io/v2");
}

/// unkeyed/unkey 86688de608, PR #4922 (A50): one bad policy was all it took.
#[test]
fn what_is_no_policy_is_refused_by_name() {
    for json in ["null", "[]", "\"x\"", "1", "true"] {
        assert_eq!(problem(json), "is no JSON object", "{json}");
    }
    assert_eq!(problem("{}"), "has neither spec nor specs");
    assert!(problem("{\"spec\":").starts_with("is no JSON at line"));
    assert!(problem(vec![b'{', 0xff, b'}']).starts_with("is no JSON at line"));
    assert!(problem(vec![b' '; 300 * 1024]).contains("more than 262144"));
    let deep = format!("{{\"spec\":{}1{}}}", "[".repeat(70), "]".repeat(70));
    assert!(problem(deep).contains("nested more than 64 deep"));
    let deeper = format!("{{\"spec\":{}1{}}}", "[".repeat(70_000), "]".repeat(70_000));
    assert!(
        problem(deeper).starts_with("is no JSON"),
        "and no stack overflows"
    );
}

/// Krane is asked for policies of namespaces; one of the whole cluster is another's business.
#[test]
fn other_kinds_are_refused() {
    for (key, value) in [
        ("kind", json!("CiliumClusterwideNetworkPolicy")),
        ("kind", json!("Secret")),
        ("kind", json!(["CiliumNetworkPolicy"])),
        ("apiVersion", json!("v1")),
        ("apiVersion", json!("cilium.io.example/v2")),
    ] {
        let mut policy = policy();
        policy[key] = value;
        assert_eq!(problem(policy.to_string()), "is of another kind");
    }
}

/// cilium/cilium PR #13180, #26384, PR #47882 (B34): stored by the API server, enforced by nobody.
#[test]
fn what_would_be_stored_and_do_nothing_is_refused() {
    let with = |change: fn(&mut Value)| {
        let mut policy = policy();
        change(&mut policy["spec"]);
        problem(policy.to_string())
    };
    let selects = with(|spec| spec["nodeSelector"] = json!({}));
    assert!(selects.starts_with("selects nodes"), "{selects}");
    for port in ["6581-6586", "70000", "", "-", "80 ", "a_b"] {
        let mut policy = policy();
        policy["spec"]["ingress"][0]["toPorts"][0]["ports"][0]["port"] = json!(port);
        assert!(
            problem(policy.to_string()).contains("has the port"),
            "{port}"
        );
    }
    for port in ["0", "65535", "http", "8080-http"] {
        let mut policy = policy();
        policy["spec"]["ingress"][0]["toPorts"][0]["ports"][0]["port"] = json!(port);
        assert_eq!(problem(policy.to_string()), "", "{port}");
    }
    let egress = with(|spec| {
        spec["egressDeny"] = json!([{ "toPorts": [{ "ports": [{ "port": "1-2" }] }] }]);
    });
    assert!(egress.contains("has the port"), "{egress}");
}

/// cilium/cilium#38795 (B35): krane claims nothing about rules and leaves none out.
#[test]
fn all_rules_go_through_as_they_came() {
    let rule = policy()["spec"].clone();
    let both = json!({ "spec": rule, "specs": [{ "description": "bad first" }, rule] });
    let body = body(&both);
    assert_eq!(
        (&body["spec"], &body["specs"]),
        (&both["spec"], &both["specs"])
    );
    let bad = json!({ "specs": [rule, { "nodeSelector": {} }] });
    assert!(problem(bad.to_string()).starts_with("selects nodes"));
    let unknown = json!({ "spec": rule, "ingres": [] });
    assert_eq!(
        self::body(&unknown)["ingres"],
        json!([]),
        "for the API server to refuse"
    );
}

/// The API server refuses such a label; left out, the policy would be open to all.
#[test]
fn a_label_that_is_null_is_no_selector_of_more() {
    for place in ["endpointSelector", "ingress", "specs"] {
        let selector = json!({ "matchLabels": { "unkey.com/environment.id": null } });
        let mut hostile = policy();
        match place {
            "ingress" => hostile["spec"]["ingress"][0]["fromEndpoints"][0] = selector,
            "specs" => hostile["specs"] = json!([{ "endpointSelector": selector }]),
            place => hostile["spec"][place] = selector,
        }
        let problem = problem(hostile.to_string());
        assert!(
            problem.contains("a label that is null"),
            "{place}: {problem}"
        );
    }
}

#[test]
fn null_says_nothing_wherever_it_stands() {
    let mut with = policy();
    with["spec"]["egress"] = Value::Null;
    with["spec"]["ingress"][0]["icmps"] = Value::Null;
    with["metadata"]["annotations"] = Value::Null;
    let body = body(&with);
    assert_eq!(body["spec"], policy()["spec"]);
    assert!(!fields_of(&body).to_string().contains("egress"));
}

#[test]
fn reserved_places_and_names_are_refused() {
    let refused = |namespace: &str, name: &str| {
        let invalid = validate_delete(namespace, name, &rules()).err();
        invalid.map(|invalid| invalid.field).unwrap_or_default()
    };
    assert_eq!(refused("abcdefgh", "p.with.dots"), "");
    assert_eq!(refused("sentinel", "sentinel-egress-to-dep-1"), "");
    assert_eq!(
        refused("abcdefgh", "allow-sentinel-ingress"),
        "",
        "the original's, not ours"
    );
    for namespace in ["kube-system", "default", "unkey", "", "A"] {
        assert_eq!(refused(namespace, "p"), "k8s_namespace", "{namespace}");
    }
    assert_eq!(
        refused("abcdefgh", "allow-sentinel-ingress-env-1-0"),
        "k8s_name"
    );
    assert_eq!(refused("sentinel", "sen-1-gossip-lan"), "k8s_name");
    for name in ["", "a_b", "A", ".a", "a..b", "-a"] {
        assert_eq!(refused("abcdefgh", name), "k8s_name", "{name}");
    }
    assert_eq!(refused("abcdefgh", &"a".repeat(254)), "k8s_name");
    let long_id = PolicyInput {
        cilium_network_policy_id: "a".repeat(64),
        ..input(&policy())
    };
    let invalid = validate(long_id, &rules()).err();
    let field = invalid.map(|invalid| invalid.field);
    assert_eq!(field.as_deref(), Some("cilium_network_policy_id"));
}

#[test]
fn nothing_of_a_policy_is_in_its_debug_output() {
    let desired =
        validate(input(&policy()), &rules()).unwrap_or_else(|invalid| panic!("{invalid}"));
    let shown = format!("{:?}", Desired::CiliumNetworkPolicy(Box::new(desired)));
    assert!(shown.contains("net_1") && !shown.contains("d_1"), "{shown}");
}

proptest! {
    /// Whatever the control plane sends: no panic, and what is applied is under krane's names.
    #[test]
    fn no_bytes_break_anything(policy in prop::collection::vec(any::<u8>(), 0..200)) {
        let input = PolicyInput { policy, ..input(&json!({})) };
        if let Ok(desired) = validate(input, &rules()) {
            let body = desired.render(&rules(), None, Keep::Nothing).body;
            prop_assert_eq!(&body["metadata"]["namespace"], "abcdefgh");
        }
    }
}
