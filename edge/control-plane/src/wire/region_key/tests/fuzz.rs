//! Whatever comes over a stream, it is a state, or a version with a reason.

use krane_sim::control_plane::samples;
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
    let state = DeploymentState {
        version: 7,
        ..samples::apply(samples::deployment("abcdefgh", "dep-1"))
    };
    read(Controller::Deployments, state.encode_to_vec());
}

#[test]
fn every_message_about_a_sentinel_is_read() {
    let state = SentinelState {
        version: 7,
        ..samples::apply_sentinel(samples::sentinel("gate-1"))
    };
    read(Controller::Sentinels, state.encode_to_vec());
}

#[test]
fn every_message_about_a_policy_is_read() {
    let state = CiliumNetworkPolicyState {
        version: 7,
        ..samples::apply_policy(samples::policy("abcdefgh", "policy-1"))
    };
    read(Controller::Cilium, state.encode_to_vec());
}
