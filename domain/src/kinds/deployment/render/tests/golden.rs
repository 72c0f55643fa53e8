//! The manifests as they are sent. A change here is a change of every customer's workload: raise
//! the renderer number with it.

use super::{all_rules, autoscaler, body, body_by};
use crate::kinds::deployment::{AutoscalingInput, DeploymentInput};
use crate::testing::{full_input, minimal_input, scaled_input};

#[test]
fn minimal() {
    insta::assert_json_snapshot!("minimal", body(minimal_input()));
}

#[test]
fn full() {
    insta::assert_json_snapshot!("full", body_by(full_input(), &all_rules()));
}

#[test]
fn scaled() {
    insta::assert_json_snapshot!("scaled", body(scaled_input()));
}

#[test]
fn autoscaler_of_a_full_policy() {
    insta::assert_json_snapshot!("autoscaler", autoscaler(scaled_input()));
}

#[test]
fn autoscaler_of_a_policy_without_targets() {
    let input = DeploymentInput {
        autoscaling: Some(AutoscalingInput {
            min_replicas: 1,
            max_replicas: 1,
            ..AutoscalingInput::default()
        }),
        ..minimal_input()
    };
    insta::assert_json_snapshot!("autoscaler_minimal", autoscaler(input));
}

#[test]
fn edge_values() {
    let input = DeploymentInput {
        replicas: 0,
        cpu_millicores: 1,
        memory_mib: 1,
        port: -5,
        shutdown_signal: "SIGTERM".to_owned(),
        healthcheck: Some(br#"{"METHOD":"POST","Path":"ping","intervalSeconds":-3}"#.to_vec()),
        git_commit_message: Some(String::new()),
        ..minimal_input()
    };
    insta::assert_json_snapshot!("edge", body(input));
}
