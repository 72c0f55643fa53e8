//! What reaches the log, of krane and of every library below it.

use krane_domain::object::{ObjectRef, Resource};
use krane_ports::Cluster;
use serde_json::{Value, json};

use super::server::Answer;
use super::{Rig, pods, rendered, replica_set, replica_sets};
use crate::log::Listening;

/// A kube client logs a body that it cannot decode, at WARN and in full (D34).
#[tokio::test]
async fn no_body_and_no_token_is_logged_at_any_level() {
    let log = Listening::to(tracing::Level::TRACE);
    let secret = |value: &Value| value.to_string().replace("VALUE", "hunter2");
    let bodies = [
        (
            200,
            secret(&json!({"kind": "Secret", "data": {"a": "VALUE"}})),
        ),
        (
            200,
            secret(&json!({"metadata": {"resourceVersion": "1"}, "items": ["VALUE"]})),
        ),
        (200, secret(&json!({"type": "ADDED", "object": "VALUE"}))),
        (200, "hunter2".to_owned()),
        (
            422,
            secret(&json!({"kind": "Status", "code": 422, "message": "VALUE"})),
        ),
        (401, secret(&json!({"kind": "Status", "code": 401}))),
        (500, "hunter2".to_owned()),
    ];
    for (code, body) in bodies {
        let rig = Rig::answering(move || Answer::text(code, "application/json", &body)).await;
        let mut object = rendered();
        object.reference = ObjectRef::new(Resource::Secret, "ws-1", "depot-pull-secret");
        object.body["data"] = json!({"a": "hunter2"});
        let _ = rig.cluster.apply(&object, None).await;
        let _ = rig.cluster.get(&replica_set()).await;
        let _ = rig.cluster.metadata(&replica_set()).await;
        let _ = rig.cluster.delete(&replica_set(), "u-1").await;
        let _ = rig.cluster.list(&replica_sets()).await;
        let _ = rig.cluster.watch(&pods(), "1").await;
    }
    let text = log.text();
    assert!(
        text.contains("/secrets/depot-pull-secret"),
        "nothing was captured"
    );
    assert!(
        !text.contains("hunter2") && !text.contains("secret-token"),
        "{text}"
    );
}
