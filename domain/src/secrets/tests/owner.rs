//! The ReplicaSet above a pod, and what is compared with the desired states.

use serde_json::{Value, json};

use super::{BLOB, CLAIM, Claim, Denial, check, decode, identity, owner, pod_json, prove};
use crate::labels;
use crate::object::Metadata;

#[test]
fn an_owner_that_is_not_of_krane_and_the_deployment_is_denied() {
    let mut owners: Vec<Option<Metadata>> = vec![None];
    for key in [labels::MANAGED_BY, labels::COMPONENT, labels::DEPLOYMENT_ID] {
        let mut changed = owner();
        changed.labels.insert(key.to_owned(), "other".to_owned());
        owners.push(Some(changed));
        let mut without = owner();
        without.labels.remove(key);
        owners.push(Some(without));
    }
    owners.push(Some(Metadata {
        uid: "uid-new".into(),
        ..owner()
    }));
    for owner in owners {
        let result = check(&pod_json(), owner.as_ref(), CLAIM, BLOB);
        assert_eq!(result, Err(Denial::NotOfAReplicaSet), "{owner:?}");
    }
}

/// (X4) One patch of the environment id in the template made the pods ask with another key ring.
#[test]
fn a_pod_of_another_environment_than_its_replica_set_is_denied() {
    let mut pod = pod_json();
    for field in ["labels", "annotations"] {
        pod["metadata"][field][labels::ENVIRONMENT_ID] = json!("env_2");
    }
    let claim = Claim {
        environment_id: "env_2",
        ..CLAIM
    };
    let denied = Err(Denial::OwnerOfAnotherEnvironment);
    assert_eq!(check(&pod, Some(&owner()), claim, BLOB), denied);
    let mut without = owner();
    without.labels.remove(labels::ENVIRONMENT_ID);
    assert_eq!(check(&pod_json(), Some(&without), CLAIM, BLOB), denied);
}

/// What is compared with the desired states is the token's namespace, the pod's own labels, and the
/// name and mark of its ReplicaSet.
#[test]
fn a_proof_carries_what_is_compared_with_the_desired_states() {
    let mut json = pod_json();
    let who = identity();
    let mut set = owner();
    let origin = |pod: &Value, set: &Metadata| {
        let pod = decode(pod);
        let proof = prove(&who, Some(&pod), Some(set), CLAIM).unwrap();
        let origin = proof.origin;
        let texts = [
            origin.namespace,
            origin.replica_set,
            origin.deployment_id,
            origin.workspace_id,
            origin.environment_id,
        ];
        (texts.map(str::to_owned), origin.is_of_scheduler)
    };
    let texts = |workspace: &str| ["tenant", "app", "d_1", workspace, "env_1"].map(str::to_owned);
    assert_eq!(origin(&json, &set), (texts(""), false));
    json["metadata"]["labels"][labels::WORKSPACE_ID] = json!("ws_1");
    let mark = labels::SCHEDULER.to_owned();
    set.labels.insert(labels::DESIRED_BY.to_owned(), mark);
    assert_eq!(origin(&json, &set), (texts("ws_1"), true));
}
