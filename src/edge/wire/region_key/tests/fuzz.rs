//! Whatever comes over a stream, it is a state, or a version with a reason.

use krane_testfuzz::Fuzz;

use super::*;

/// With the rules of a real region: names are checked then.
fn read(controller: Controller, document: Vec<u8>) {
    let wire = Wire::new(
        "aws",
        "us-east-1",
        controller,
        Arc::new(Rules::new("krane")),
    );
    let fuzz = Fuzz::new(controller.name()).document(document).words([
        &b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
        b"kube-system",
        b"\x0a\x00",
        b"\x08\x00",
        b"\xe2\x80\xae",
        b"{}",
        b"../",
    ]);
    fuzz.run(|message| {
        let message = Bytes::copy_from_slice(message);
        match wire.stream_item(&message) {
            StreamItem::State(state) => {
                assert_eq!(state.size, message.len());
                assert!(!state.key.name.is_empty() && !state.key.namespace.is_empty());
            }
            StreamItem::Unnamed { reason, .. } => assert!(!reason.is_empty()),
        }
        wire.answer(&message);
    });
}

#[test]
fn every_message_about_a_deployment_is_read() {
    let apply = deployment_state::State::Apply(ApplyDeployment {
        k8s_namespace: "abcdefgh".to_owned(),
        k8s_name: "dep-1".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        image: "registry.example/app:1".to_owned(),
        replicas: 2,
        cpu_millicores: 250,
        memory_mib: 256,
        ..ApplyDeployment::default()
    });
    let state = DeploymentState {
        version: 7,
        state: Some(apply),
    };
    read(Controller::Deployments, state.encode_to_vec());
}

#[test]
fn every_message_about_a_sentinel_is_read() {
    let apply = sentinel_state::State::Apply(ApplySentinel {
        k8s_name: "gate-1".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        environment_id: "env_1".to_owned(),
        app_id: "app_1".to_owned(),
        sentinel_id: "s_1".to_owned(),
        image: "registry.example/gate:1".to_owned(),
        replicas: 1,
        cpu_millicores: 250,
        memory_mib: 256,
    });
    let state = SentinelState {
        version: 7,
        state: Some(apply),
    };
    read(Controller::Sentinels, state.encode_to_vec());
}

#[test]
fn every_message_about_a_policy_is_read() {
    let apply = cilium_network_policy_state::State::Apply(ApplyCiliumNetworkPolicy {
        k8s_namespace: "abcdefgh".to_owned(),
        k8s_name: "policy-1".to_owned(),
        cilium_network_policy_id: "p_1".to_owned(),
        policy: br#"{"apiVersion":"cilium.io/v2","kind":"CiliumNetworkPolicy","spec":{}}"#
            .to_vec()
            .into(),
    });
    let state = CiliumNetworkPolicyState {
        version: 7,
        state: Some(apply),
    };
    read(Controller::Cilium, state.encode_to_vec());
}
