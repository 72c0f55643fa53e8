use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{policy_name, render_shared, shared_key_of, shared_reference};
use crate::ids::{Controller, SharedKey};
use crate::kinds::{Member, Password, PullSecret, Rules};
use crate::labels;
use crate::object::{LiveObject, Rendered, Resource};
use crate::origin::Origin;
use crate::testing::{applied, applied_json};

fn member(workspace: &str, port: u16) -> Member {
    Member::isolated(workspace, "env_A", port)
}

fn policy_key() -> SharedKey {
    SharedKey::IsolationPolicy {
        namespace: "ns".into(),
        environment: "env_A".into(),
    }
}

fn rules() -> Rules {
    Rules {
        pull_secret: Some(PullSecret {
            url: "https://registry.example".to_owned(),
            username: "canary-user".to_owned(),
            password: Password::new("canary-\"password\""),
        }),
        ..Rules::default()
    }
}

fn render(key: &SharedKey, members: &[Member]) -> Rendered {
    render_shared(key, members, &rules()).unwrap_or_else(|| panic!("{key} renders"))
}

fn live(rendered: &Rendered) -> LiveObject {
    applied(rendered, "uid", 1).unwrap_or_else(|error| panic!("{error}"))
}

/// D18: one policy per namespace and environment, ports of all members.
#[test]
fn the_isolation_policy_lets_in_the_environments_sentinels_only() {
    let members = [
        member("ws_1", 9000),
        member("ws_1", 443),
        member("ws_1", 9000),
    ];
    let policy = render(&policy_key(), &members);
    insta::assert_json_snapshot!("policy", policy.body);
    assert_eq!(
        policy.body["metadata"]["labels"].get("unkey.com/networkpolicy.id"),
        None
    );
}

#[test]
fn members_in_any_order_make_the_same_policy() {
    let one = render(
        &policy_key(),
        &[member("ws_1", 1), member("ws_2", 2), member("ws_1", 3)],
    );
    let other = render(
        &policy_key(),
        &[member("ws_1", 3), member("ws_1", 1), member("ws_2", 2)],
    );
    assert_eq!(one, other);
    let ingress = one.body["spec"]["ingress"].as_array().map_or(0, Vec::len);
    assert_eq!(ingress, 2, "a rule for each workspace");
}

/// (D32) Whoever came first, and whatever its workspace is called.
#[test]
fn calls_add_no_workspace_to_those_of_the_control_plane() {
    let theirs = [member("ws_m", 1), member("ws_m", 2)];
    let called = |workspace, port| member(workspace, port).of(Origin::Scheduler);
    let alone = render(&policy_key(), &theirs);
    for stranger in ["ws_a", "ws_z"] {
        let mut members = theirs.to_vec();
        members.insert(0, called(stranger, 3));
        assert_eq!(render(&policy_key(), &members), alone);
        members.rotate_left(1);
        assert_eq!(render(&policy_key(), &members), alone);
    }
    let of_one = [theirs[0].clone(), called("ws_m", 2)];
    assert_eq!(
        render(&policy_key(), &of_one),
        alone,
        "of the same workspace"
    );
    let policy = render(&policy_key(), &[called("ws_a", 3)]);
    let ingress = policy.body["spec"]["ingress"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(ingress, 1, "among themselves all count");
}

/// What else workloads share says nothing of them.
#[test]
fn no_member_changes_a_namespace_or_a_pull_secret() {
    for key in [
        SharedKey::Namespace("ns".into()),
        SharedKey::PullSecret("ns".into()),
    ] {
        let alone = render(&key, &[member("ws_m", 1)]);
        let called = member("ws_a", 2).of(Origin::Scheduler);
        assert_eq!(render(&key, &[called, member("ws_m", 1)]), alone, "{key}");
    }
}

#[test]
fn many_ports_are_split_as_cilium_wants() {
    let members: Vec<Member> = (1..=81).map(|port| member("ws_1", port)).collect();
    let policy = render(&policy_key(), &members);
    let entries = policy.body["spec"]["ingress"][0]["toPorts"]
        .as_array()
        .cloned();
    let counts: Vec<usize> = entries
        .unwrap_or_default()
        .iter()
        .map(|entry| entry["ports"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(counts, [40, 40, 1]);
}

#[test]
fn a_namespace_gets_our_labels() {
    let namespace = render(&SharedKey::Namespace("ns".into()), &[member("ws_1", 1)]);
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "ns",
            "labels": {
                "app.kubernetes.io/managed-by": "krane",
                "app.kubernetes.io/component": "namespace",
            },
            "annotations": { "krane.unkey.com/renderer": "2" },
        },
    });
    assert_eq!(namespace.body, expected);
}

#[test]
fn the_pull_secret_holds_the_credentials_and_shows_them_nowhere() {
    let secret = render(&SharedKey::PullSecret("ns".into()), &[member("ws_1", 1)]);
    assert_eq!(secret.body["type"], "kubernetes.io/dockerconfigjson");
    let data = secret.body["data"][".dockerconfigjson"]
        .as_str()
        .unwrap_or_default();
    let config: Value =
        serde_json::from_slice(&STANDARD.decode(data).unwrap_or_default()).unwrap_or_default();
    let expected = json!({ "auths": { "https://registry.example": {
        "username": "canary-user",
        "password": "canary-\"password\"",
    } } });
    assert_eq!(config, expected);

    let live = live(&secret);
    let text = format!("{secret:?} {live:?} {:?} {}", rules(), live.content);
    assert!(!text.contains("canary") && !text.contains(data), "{text}");
}

#[test]
fn without_members_or_registry_there_is_nothing_to_render() {
    for key in [
        SharedKey::Namespace("ns".into()),
        policy_key(),
        SharedKey::PullSecret("ns".into()),
    ] {
        assert_eq!(render_shared(&key, &[], &rules()), None);
    }
    let key = SharedKey::PullSecret("ns".into());
    assert_eq!(
        render_shared(&key, &[member("ws_1", 1)], &Rules::default()),
        None
    );
}

#[test]
fn a_live_shared_object_leads_back_to_its_key() {
    for key in [
        SharedKey::Namespace("ns".into()),
        policy_key(),
        SharedKey::PullSecret("ns".into()),
    ] {
        let rendered = render(&key, &[member("ws_1", 1)]);
        assert_eq!(rendered.reference, shared_reference(&key));
        assert_eq!(shared_key_of(&live(&rendered)), Some(key));
    }
}

#[test]
fn a_policy_with_a_changed_label_is_known_by_its_selector() {
    let rendered = render(&policy_key(), &[member("ws_1", 1)]);
    let mut json = applied_json(&rendered, "uid", 1);
    json["metadata"]["labels"]["unkey.com/environment.id"] = json!("other");
    let live = LiveObject::from_json(Resource::CiliumNetworkPolicy, json);
    assert_eq!(
        live.ok().as_ref().and_then(shared_key_of),
        Some(policy_key())
    );
}

#[test]
fn foreign_policies_and_secrets_lead_to_no_key() {
    let rendered = render(&policy_key(), &[member("ws_1", 1)]);
    let of = |change: fn(&mut Value)| {
        let mut json = applied_json(&rendered, "uid", 1);
        change(&mut json);
        LiveObject::from_json(Resource::CiliumNetworkPolicy, json)
            .ok()
            .as_ref()
            .and_then(shared_key_of)
    };
    assert_eq!(
        of(|json| json["metadata"]["name"] = json!("allow-all")),
        None
    );
    let sent = |json: &mut Value| {
        json["metadata"]["labels"]["unkey.com/networkpolicy.id"] = json!("p_1");
    };
    assert_eq!(of(sent), None);

    let secret = json!({ "metadata": {
        "name": "database", "namespace": "ns", "uid": "u", "resourceVersion": "1",
    } });
    let secret = LiveObject::from_json(Resource::Secret, secret);
    assert_eq!(secret.ok().as_ref().and_then(shared_key_of), None);
}

#[test]
fn policy_names_follow_the_decision() {
    assert_eq!(
        policy_name("env_Abc"),
        "allow-sentinel-ingress-env-abc-3750d71e"
    );
    assert_ne!(policy_name("env_abc"), policy_name("env-abc"));
    assert_ne!(policy_name("ENV"), policy_name("env"));
}

#[test]
fn watches_are_what_the_role_allows() {
    let text = |rules: &Rules| {
        let line = |spec: &crate::kinds::WatchSpec| {
            format!(
                "{} {} {}",
                spec.resource.plural(),
                spec.label_selector,
                spec.field_selector
            )
        };
        Controller::Deployments
            .watches(rules)
            .iter()
            .map(line)
            .collect::<Vec<_>>()
    };
    let ours = "app.kubernetes.io/managed-by=krane";
    let workload = format!("{ours},app.kubernetes.io/component=deployment");
    let mut expected = vec![
        format!("replicasets {workload} "),
        format!("pods {workload} "),
        format!("horizontalpodautoscalers {workload} "),
        format!("namespaces {ours} "),
        format!(
            "ciliumnetworkpolicies {ours},app.kubernetes.io/component=ciliumnetworkpolicy,\
             !unkey.com/networkpolicy.id "
        ),
    ];
    assert_eq!(text(&Rules::default()), expected);
    expected.push("secrets  metadata.name=depot-pull-secret".to_owned());
    assert_eq!(text(&rules()), expected);
}

proptest! {
    #[test]
    fn policy_names_are_always_legal(id in "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?") {
        let name = policy_name(&id);
        prop_assert!(name.len() <= 253);
        for part in name.split('.') {
            let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            prop_assert!(part.starts_with(is_end) && part.ends_with(is_end), "{}", name);
            prop_assert!(part.chars().all(|c| is_end(c) || c == '-'), "{}", name);
        }
        let environment: Arc<str> = id.into();
        let key = SharedKey::IsolationPolicy { namespace: "ns".into(), environment };
        prop_assert_eq!(&*shared_reference(&key).name, &name);
    }
}

#[test]
fn a_watch_shows_what_carries_its_labels_and_lacks_the_others() {
    let policies = &Controller::Deployments.watches(&Rules::default())[4];
    let with = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let labels = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        policies.selects(&labels.collect())
    };
    let ours = (labels::MANAGED_BY, labels::MANAGER);
    let policy = (labels::COMPONENT, labels::COMPONENT_POLICY);
    assert!(with(&[ours, policy, ("a", "b")]));
    assert!(!with(&[ours]));
    assert!(!with(&[ours, (labels::COMPONENT, "other")]));
    assert!(!with(&[ours, policy, (labels::NETWORK_POLICY_ID, "np_1")]));
}
