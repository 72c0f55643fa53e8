//! Messages to test with.

use proptest::prelude::*;
use serde_json::Value;

use crate::kinds::deployment::{AutoscalingInput, DeploymentInput};
use crate::kinds::sentinel::SentinelInput;

/// One change of a JSON tree.
pub(crate) type Edit = fn(&mut Value);

/// The list at a JSON pointer, to change it.
pub(crate) fn list_at<'a>(object: &'a mut Value, pointer: &str) -> &'a mut Vec<Value> {
    let list = object.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.unwrap_or_else(|| panic!("no list at {pointer}"))
}

/// Only what is required.
pub(crate) fn minimal_input() -> DeploymentInput {
    DeploymentInput {
        k8s_namespace: "abcdefgh".to_owned(),
        k8s_name: "dep-1".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        image: "nginx:1".to_owned(),
        replicas: 1,
        cpu_millicores: 250,
        memory_mib: 256,
        ..DeploymentInput::default()
    }
}

/// An ordinary sentinel.
pub(crate) fn sentinel_input() -> SentinelInput {
    SentinelInput {
        k8s_name: "sen-1".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        app_id: String::new(),
        environment_id: "env_1".to_owned(),
        sentinel_id: "sen_1".to_owned(),
        image: "ghcr.io/unkeyed/sentinel:v1".to_owned(),
        replicas: 2,
        cpu_millicores: 256,
        memory_mib: 1024,
    }
}

/// Every field, each with a value found nowhere else.
pub(crate) fn scaled_input() -> DeploymentInput {
    DeploymentInput {
        autoscaling: Some(AutoscalingInput {
            min_replicas: 3,
            max_replicas: 19,
            cpu_threshold: Some(71),
            memory_threshold: Some(83),
        }),
        ephemeral_storage_mib: Some(5120),
        ..full_input()
    }
}

/// Every field of a workload with a fixed number of pods and no volume, each with a value found
/// nowhere else.
pub(crate) fn full_input() -> DeploymentInput {
    DeploymentInput {
        k8s_namespace: "wsnamespace".to_owned(),
        k8s_name: "odd-name".to_owned(),
        workspace_id: "ws_Odd".to_owned(),
        project_id: "proj_Odd".to_owned(),
        environment_id: "env_Odd".to_owned(),
        deployment_id: "d_Odd".to_owned(),
        image: "registry.depot.dev/odd/image@sha256:0123abcd".to_owned(),
        replicas: 7,
        cpu_millicores: 1300,
        memory_mib: 3000,
        build_id: Some("build_Odd".to_owned()),
        encrypted_environment_variables: b"{\"ODD\":\"sealed\"}".to_vec(),
        command: vec!["odd".to_owned(), "--flag".to_owned()],
        port: 4321,
        shutdown_signal: "SIGQUIT".to_owned(),
        healthcheck: Some(
            br#"{"method":"GET","path":"/odd","intervalSeconds":11,"timeoutSeconds":6,"failureThreshold":4,"initialDelaySeconds":2}"#
                .to_vec(),
        ),
        app_id: "app_Odd".to_owned(),
        environment_slug: Some("odd-slug".to_owned()),
        region: Some("odd-region-1".to_owned()),
        git_commit_sha: Some("0ddc0de".to_owned()),
        git_branch: Some("odd/branch".to_owned()),
        git_repo: Some("odd/repo".to_owned()),
        git_commit_message: Some("odd: costs $5 $(PATH)".to_owned()),
        autoscaling: None,
        ephemeral_storage_mib: None,
    }
}

fn id() -> impl Strategy<Value = String> {
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?"
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\\PC{0,30}")
}

fn autoscaling() -> impl Strategy<Value = AutoscalingInput> {
    let threshold = || prop::option::of(prop_oneof![1..=100_i32, 1..=i32::MAX]);
    let bounds = (1..=1000_u32, 1..=1000_u32);
    (bounds, threshold(), threshold()).prop_map(|(bounds, cpu_threshold, memory_threshold)| {
        AutoscalingInput {
            min_replicas: bounds.0.min(bounds.1),
            max_replicas: bounds.0.max(bounds.1),
            cpu_threshold,
            memory_threshold,
        }
    })
}

fn healthcheck() -> impl Strategy<Value = Option<Vec<u8>>> {
    let probe = (
        "GET|POST|",
        "/?[a-z$()]{0,10}",
        -2..40_i64,
        -2..40_i64,
        0..5_i64,
        -1..5_i64,
    );
    prop::option::of(
        probe.prop_map(|(method, path, interval, timeout, failures, delay)| {
            format!(
                "{{\"method\":\"{method}\",\"path\":\"{path}\",\"intervalSeconds\":{interval},\
             \"timeoutSeconds\":{timeout},\"failureThreshold\":{failures},\
             \"initialDelaySeconds\":{delay}}}"
            )
            .into_bytes()
        }),
    )
}

prop_compose! {
    fn identity()(
        // A leading "w" keeps clear of reserved names.
        k8s_namespace in "w[-a-z0-9]{0,20}[a-z0-9]",
        k8s_name in name(),
        workspace_id in id(),
        project_id in id(),
        environment_id in id(),
        deployment_id in id(),
        app_id in prop_oneof![Just(String::new()), id()],
        build_id in prop::option::of(id()),
    ) -> DeploymentInput {
        DeploymentInput {
            k8s_namespace, k8s_name, workspace_id, project_id, environment_id, deployment_id,
            build_id, app_id, ..DeploymentInput::default()
        }
    }
}

prop_compose! {
    /// Any message that is valid.
    pub(crate) fn valid_input()(
        identity in identity(),
        replicas in 0..=1000_i32,
        autoscaling in prop::option::of(autoscaling()),
        ephemeral_storage_mib in prop::option::of(prop_oneof![1..=67_108_864_i64, Just(2048)]),
        cpu_millicores in prop_oneof![1..=4_i64, 1..=1_000_000_i64, Just(1000), Just(2000)],
        memory_mib in prop_oneof![1..=4_i64, 1..=67_108_864_i64, Just(1024), Just(2048)],
        encrypted_environment_variables in prop::collection::vec(any::<u8>(), 0..40),
        command in prop::collection::vec("\\PC{0,12}", 0..3),
        port in -1..=65535_i32,
        shutdown_signal in "|SIGTERM|SIGINT|SIGQUIT|SIGKILL",
        healthcheck in healthcheck(),
        texts in [text(), text(), text(), text(), text(), text()],
    ) -> DeploymentInput {
        let [environment_slug, region, git_commit_sha, git_branch, git_repo, git_commit_message] =
            texts;
        DeploymentInput {
            image: "registry.example/app:1".to_owned(),
            replicas, cpu_millicores, memory_mib, encrypted_environment_variables, command, port,
            shutdown_signal, healthcheck, environment_slug, region, git_commit_sha, git_branch,
            git_repo, git_commit_message, autoscaling, ephemeral_storage_mib,
            ..identity
        }
    }
}
