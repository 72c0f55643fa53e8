//! States to begin with. All fields are public: change what the test is about.

use bytes::Bytes;
use krane_proto::ctrl::v1::{
    ApplyCiliumNetworkPolicy, ApplyDeployment, ApplySentinel, CiliumNetworkPolicyState,
    DeleteCiliumNetworkPolicy, DeleteDeployment, DeleteSentinel, DeploymentState, SentinelState,
    cilium_network_policy_state, deployment_state, sentinel_state,
};

/// An image whose pods become Ready at once in the test cluster.
pub const IMAGE: &str = "registry.example/app:well";

/// One replica, port 8080, ids made of namespace and name, no variables.
pub fn deployment(namespace: &str, name: &str) -> ApplyDeployment {
    ApplyDeployment {
        k8s_namespace: namespace.to_owned(),
        k8s_name: name.to_owned(),
        workspace_id: format!("ws_{namespace}"),
        project_id: format!("proj_{namespace}"),
        environment_id: format!("env_{namespace}"),
        deployment_id: format!("d_{namespace}_{name}"),
        app_id: format!("app_{namespace}"),
        image: IMAGE.to_owned(),
        replicas: 1,
        cpu_millicores: 250,
        memory_mib: 256,
        port: 8080,
        ..ApplyDeployment::default()
    }
}

/// One replica.
pub fn sentinel(name: &str) -> ApplySentinel {
    ApplySentinel {
        k8s_name: name.to_owned(),
        workspace_id: format!("ws_{name}"),
        project_id: format!("proj_{name}"),
        app_id: String::new(),
        environment_id: format!("env_{name}"),
        sentinel_id: format!("sen_{name}"),
        image: IMAGE.to_owned(),
        replicas: 1,
        cpu_millicores: 250,
        memory_mib: 256,
    }
}

/// Lets nothing in but what comes from the same namespace.
pub fn policy(namespace: &str, name: &str) -> ApplyCiliumNetworkPolicy {
    let policy = format!(
        r#"{{"apiVersion":"cilium.io/v2","kind":"CiliumNetworkPolicy","metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{{"endpointSelector":{{}},"ingress":[{{"fromEndpoints":[{{}}]}}]}}}}"#
    );
    ApplyCiliumNetworkPolicy {
        k8s_namespace: namespace.to_owned(),
        k8s_name: name.to_owned(),
        cilium_network_policy_id: format!("net_{namespace}_{name}"),
        policy: policy.into_bytes().into(),
    }
}

/// The deployment must be like this.
pub fn apply(deployment: ApplyDeployment) -> DeploymentState {
    DeploymentState {
        state: Some(deployment_state::State::Apply(deployment)),
        version: 0,
    }
}

/// The deployment must be gone.
pub fn delete(deployment: &ApplyDeployment) -> DeploymentState {
    let delete = DeleteDeployment {
        k8s_namespace: deployment.k8s_namespace.clone(),
        k8s_name: deployment.k8s_name.clone(),
    };
    DeploymentState {
        state: Some(deployment_state::State::Delete(delete)),
        version: 0,
    }
}

/// The sentinel must be like this.
pub fn apply_sentinel(sentinel: ApplySentinel) -> SentinelState {
    SentinelState {
        state: Some(sentinel_state::State::Apply(sentinel)),
        version: 0,
    }
}

/// The sentinel must be gone.
pub fn delete_sentinel(name: &str) -> SentinelState {
    let delete = DeleteSentinel {
        k8s_name: name.to_owned(),
    };
    SentinelState {
        state: Some(sentinel_state::State::Delete(delete)),
        version: 0,
    }
}

/// The policy must be like this.
pub fn apply_policy(policy: ApplyCiliumNetworkPolicy) -> CiliumNetworkPolicyState {
    let state = cilium_network_policy_state::State::Apply(policy);
    CiliumNetworkPolicyState {
        state: Some(state),
        version: 0,
    }
}

/// The policy must be gone.
pub fn delete_policy(namespace: &str, name: &str) -> CiliumNetworkPolicyState {
    let delete = DeleteCiliumNetworkPolicy {
        k8s_namespace: namespace.to_owned(),
        k8s_name: name.to_owned(),
    };
    let state = cilium_network_policy_state::State::Delete(delete);
    CiliumNetworkPolicyState {
        state: Some(state),
        version: 0,
    }
}

/// A state that decodes up to its last byte and not further; the object's name stays readable.
pub fn truncated(message: &[u8]) -> Bytes {
    let mut bytes = message.to_vec();
    // The key of a field whose length never comes.
    bytes.extend([0x9a, 0x06, 0x7f]);
    bytes.into()
}

/// Bytes that are no protobuf at all, and carry no version.
pub fn garbage() -> Bytes {
    Bytes::from_static(&[0xff; 24])
}
