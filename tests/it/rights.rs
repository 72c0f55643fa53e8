//! The rights of the chart, against what the controllers look at and write.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail them"
)]

use std::collections::BTreeSet;

use krane_domain::ids::Controller;
use krane_domain::kinds::{Password, PullSecret, Rules, WatchSpec};
use krane_domain::object::Resource;
use serde_json::Value;

const RIGHTS: &str = include_str!("../../charts/krane/files/rbac.yaml");

/// Whether some role grants this verb wherever the watch looks.
fn is_granted(roles: &[Value], watch: &WatchSpec, verb: &str) -> bool {
    let strings = |value: &Value| -> BTreeSet<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let covers_place = |role: &&Value| match role["kind"].as_str() {
        Some("ClusterRole") => true,
        Some("Role") => watch.namespace == role["metadata"]["namespace"].as_str(),
        _ => false,
    };
    roles.iter().filter(covers_place).any(|role| {
        let mut granted = role["rules"].as_array().into_iter().flatten();
        granted.any(|rule| {
            strings(&rule["apiGroups"]).contains(watch.resource.group())
                && strings(&rule["resources"]).contains(watch.resource.plural())
                && strings(&rule["verbs"]).contains(verb)
        })
    })
}

/// A controller whose right is forgotten would hold up the readiness of all.
#[test]
fn every_controller_may_see_and_write_what_it_keeps() {
    let roles: Vec<Value> = serde_saphyr::from_multiple(RIGHTS).unwrap();
    let everything_on = Rules {
        pull_secret: Some(PullSecret {
            url: "registry.example".to_owned(),
            username: "krane".to_owned(),
            password: Password::new("secret"),
        }),
        ..Rules::default()
    };
    for controller in Controller::ALL {
        for watch in controller.watches(&everything_on) {
            let what = format!(
                "{controller}: {} in {:?}",
                watch.resource.plural(),
                watch.namespace
            );
            for verb in ["get", "list", "watch"] {
                assert!(is_granted(&roles, &watch, verb), "{what}: {verb}");
            }
            // krane makes no pods; it deletes one only where `deployments.replace_outdated_pods` is set.
            let writes: &[&str] = if watch.resource == Resource::Pod {
                &["delete"]
            } else {
                &["create", "patch"]
            };
            for verb in writes {
                assert!(is_granted(&roles, &watch, verb), "{what}: {verb}");
            }
        }
        let primary = controller.watches(&everything_on).remove(0);
        assert_eq!(primary.resource, controller.primary(), "{controller}");
        assert!(is_granted(&roles, &primary, "delete"), "{controller}");
    }
}

#[test]
fn a_right_that_nobody_gave_is_not_there() {
    let roles: Vec<Value> = serde_saphyr::from_multiple(RIGHTS).unwrap();
    for controller in Controller::ALL {
        for watch in controller.watches(&Rules::default()) {
            assert!(!is_granted(&roles, &watch, "update"), "{watch:?}");
        }
    }
    let elsewhere = WatchSpec {
        namespace: None,
        ..Controller::Sentinels.watches(&Rules::default()).remove(0)
    };
    assert!(
        !is_granted(&roles, &elsewhere, "list"),
        "only where sentinels are"
    );
}
