//! The manifests as they are sent. A change here is a change of every customer's workload: raise
//! the renderer number with it.

use super::{all_rules, body, body_by};
use crate::kinds::deployment::DeploymentInput;
use crate::testing::{full_input, minimal_input};

#[test]
fn minimal() {
    insta::assert_json_snapshot!("minimal", body(minimal_input()));
}

#[test]
fn full() {
    insta::assert_json_snapshot!("full", body_by(full_input(), &all_rules()));
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
