use krane_domain::desired::Change;
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Rules;
use krane_domain::report::{Instance, InstanceStatus};
use krane_domain::scheduler::{Call, Watched};
use krane_proto::krane::v1::state::State as Case;
use krane_proto::krane::v1::{
    ApplyDeploymentRequest, ApplySentinelRequest, DeleteDeploymentRequest, DeleteSentinelRequest,
};
use secrecy::SecretString;

use super::access::is_authorized;
use super::messages::{
    apply_deployment, apply_sentinel, delete_deployment, delete_sentinel, state,
};

fn deployment_request() -> ApplyDeploymentRequest {
    ApplyDeploymentRequest {
        k8s_namespace: "ns".into(),
        k8s_name: "a".into(),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        environment_id: "env_1".into(),
        deployment_id: "d_1".into(),
        image: "app:1".into(),
        replicas: 3,
        cpu_millicores: 100,
        memory_mib: 64,
        build_id: Some("build_1".into()),
        encrypted_environment_variables: b"{}".to_vec().into(),
        readiness_id: Some("ready-7".into()),
    }
}

#[test]
fn only_the_whole_token_opens_and_no_token_opens_nothing() {
    let token = SecretString::from("s3cret");
    let is_right =
        |header: &str, token: Option<&SecretString>| is_authorized(Some(header.as_bytes()), token);
    for header in ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret"] {
        assert!(is_right(header, Some(&token)), "{header}");
    }
    for header in [
        "",
        "Bearer",
        "Bearer ",
        "s3cret",
        "Basic s3cret",
        "Bearer s3cre",
        "Bearer s3cret2",
        "Bearer S3CRET",
        "Bearers3cret",
    ] {
        assert!(!is_right(header, Some(&token)), "{header}");
    }
    assert!(!is_authorized(None, Some(&token)));
    assert!(!is_right("Bearer s3cret", None));
    assert!(!is_right("Bearer ", Some(&SecretString::from(""))));
    assert!(!is_authorized(None, None));
}

#[test]
fn every_field_of_a_deployment_arrives() {
    let Call::ApplyDeployment {
        input,
        readiness_id,
    } = apply_deployment(deployment_request())
    else {
        panic!("another call");
    };
    assert_eq!(readiness_id.as_deref(), Some("ready-7"));
    let texts = [
        (&input.k8s_namespace, "ns"),
        (&input.k8s_name, "a"),
        (&input.workspace_id, "ws_1"),
        (&input.project_id, "proj_1"),
        (&input.environment_id, "env_1"),
        (&input.deployment_id, "d_1"),
        (&input.image, "app:1"),
    ];
    for (text, expected) in texts {
        assert_eq!(text, expected);
    }
    let numbers = (input.replicas, input.cpu_millicores, input.memory_mib);
    assert_eq!(numbers, (3, 100, 64));
    assert_eq!(input.build_id.as_deref(), Some("build_1"));
    assert_eq!(input.encrypted_environment_variables, b"{}");
}

#[test]
fn every_request_means_a_wish_of_its_kind() {
    let rules = Rules::default();
    let sentinel = ApplySentinelRequest {
        k8s_namespace: "sentinel".into(),
        k8s_name: "s".into(),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        environment_id: "env_1".into(),
        sentinel_id: "s_1".into(),
        image: "sentinel:1".into(),
        replicas: 2,
        cpu_millicores: 100,
        memory_mib: 64,
    };
    for (call, controller, key, is_delete) in [
        (
            apply_deployment(deployment_request()),
            Controller::Deployments,
            "ns/a",
            false,
        ),
        (
            delete_deployment(DeleteDeploymentRequest {
                k8s_namespace: "ns".into(),
                k8s_name: "a".into(),
            }),
            Controller::Deployments,
            "ns/a",
            true,
        ),
        (
            apply_sentinel(sentinel),
            Controller::Sentinels,
            "sentinel/s",
            false,
        ),
        (
            delete_sentinel(DeleteSentinelRequest {
                k8s_namespace: "sentinel".into(),
                k8s_name: "s".into(),
            }),
            Controller::Sentinels,
            "sentinel/s",
            true,
        ),
    ] {
        assert_eq!(call.controller(), controller);
        let wish = call.into_wish(&rules).expect("valid");
        assert_eq!(wish.key.to_string(), key);
        assert_eq!(wish.change == Change::Delete, is_delete);
    }
}

#[test]
fn what_is_watched_arrives() {
    let instance = |pod: &str, status| Instance {
        pod: pod.into(),
        address: format!("{pod}:8080"),
        status,
        cpu_millicores: 100,
        memory_mib: 64,
    };
    let watched = Watched::Deployment {
        key: ObjectKey::new("ns", "a"),
        instances: vec![
            instance("p1", InstanceStatus::Pending),
            instance("p2", InstanceStatus::Running),
        ],
        readiness_id: Some("ready-7".into()),
    };
    let Some(Case::Deployment(deployment)) = state(&watched).state else {
        panic!("another case");
    };
    assert_eq!(deployment.deployment_k8s_name, "a");
    assert_eq!(deployment.readiness_id.as_deref(), Some("ready-7"));
    let told: Vec<_> = deployment
        .instances
        .iter()
        .map(|it| {
            (
                &*it.instance_k8s_name,
                &*it.address,
                it.cpu_millicores,
                it.memory_mib,
                it.status,
            )
        })
        .collect();
    assert_eq!(
        told,
        [("p1", "p1:8080", 100, 64, 1), ("p2", "p2:8080", 100, 64, 2)]
    );

    let watched = Watched::Sentinel {
        key: ObjectKey::new("sentinel", "s"),
        available: 2,
    };
    let Some(Case::Sentinel(sentinel)) = state(&watched).state else {
        panic!("another case");
    };
    assert_eq!((&*sentinel.k8s_name, sentinel.available_replicas), ("s", 2));
}
