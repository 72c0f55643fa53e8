//! What reaches the log, of krane and of every library below it.

use std::io::Write;
use std::sync::Arc;

use krane_actors::ports::Cluster;
use krane_domain::object::{ObjectRef, Resource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::server::Answer;
use super::{Rig, pods, rendered, replica_set, replica_sets};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A kube client logs a body that it cannot decode, at WARN and in full (D34).
#[tokio::test]
async fn no_body_and_no_token_is_logged_at_any_level() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone());
    // With one subscriber in the process, tracing asks only the thread that meets a log line first
    // whether anybody wants it; that may be another test's. With two it asks all.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

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
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(
        text.contains("/secrets/depot-pull-secret"),
        "nothing was captured"
    );
    assert!(
        !text.contains("hunter2") && !text.contains("secret-token"),
        "{text}"
    );
}
