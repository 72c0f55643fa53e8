//! Fields of states that are well.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use krane_domain::ids::Controller;
use serde_json::{Value, json};

/// The fields of a state to apply. All that such a state must have is among them.
pub(super) fn sample(controller: Controller) -> Value {
    let example = || serde_json::from_str::<Value>(super::EXAMPLE).unwrap_or_default();
    match controller {
        Controller::Deployments => example()["deployments"][0]["apply"].take(),
        Controller::Sentinels => example()["sentinels"][0]["apply"].take(),
        Controller::Cilium => json!({
            "k8sNamespace": "shop", "k8sName": "web", "ciliumNetworkPolicyId": "net_1",
            "policy": STANDARD.encode(r#"{"spec": {"endpointSelector": {}}}"#),
        }),
    }
}
