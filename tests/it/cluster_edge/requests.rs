//! What is sent, and what a good or a plain negative answer becomes.

use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::RefusalClass;
use krane_ports::{Cluster, Deletion};
use serde_json::{Value, json};

use super::server::Answer;
use super::{Rig, live, no_such_api, not_found, rendered, replica_set, status};

/// kubernetes/kubernetes#105610, #39188, #118725 (B21): under merge patches two ports of one number
/// are one. helm/helm PR #31361, kubernetes/kubernetes PR #81453 (B24): only the uid is added.
#[tokio::test]
async fn an_apply_is_forced_strict_and_made_as_krane() {
    let rig = Rig::answering(|| Answer::json(200, &live(7))).await;
    let applied = rig.cluster.apply(&rendered(), Some("u-1")).await.unwrap();
    assert_eq!((applied.resource_version, &*applied.uid), (7, "u-1"));

    let request = rig.server.only_request();
    assert_eq!(request.method, "PATCH");
    assert_eq!(
        request.path,
        "/apis/apps/v1/namespaces/ws-1/replicasets/app-1"
    );
    assert_eq!(request.query("fieldManager"), Some("krane"));
    assert_eq!(request.query("force"), Some("true"));
    assert_eq!(request.query("fieldValidation"), Some("Strict"));
    assert_eq!(
        request.headers["content-type"],
        "application/apply-patch+yaml"
    );
    assert_eq!(request.headers["user-agent"], "krane/0.1.0");
    assert_eq!(request.bearer(), "secret-token");
    let mut expected = rendered().body;
    expected["metadata"]["uid"] = json!("u-1");
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn a_first_apply_carries_no_uid() {
    let rig = Rig::answering(|| Answer::json(201, &live(1))).await;
    rig.cluster.apply(&rendered(), None).await.unwrap();
    assert_eq!(rig.server.only_request().json(), rendered().body);
}

#[tokio::test]
async fn a_delete_names_the_uid_and_runs_in_the_background() {
    let rig = Rig::answering(|| Answer::json(200, &json!({"kind": "Status"}))).await;
    rig.cluster.delete(&replica_set(), "u-1").await.unwrap();
    let request = rig.server.only_request();
    assert_eq!(request.method, "DELETE");
    assert_eq!(request.headers["content-type"], "application/json");
    let body = request.json();
    assert_eq!(body["preconditions"], json!({"uid": "u-1"}));
    assert_eq!(body["propagationPolicy"], "Background");
}

#[tokio::test]
async fn a_delete_says_whether_the_object_is_gone_or_on_its_way_out() {
    let deletion = async |answer: Value| {
        let rig = Rig::answering(move || Answer::json(200, &answer)).await;
        rig.cluster.delete(&replica_set(), "u-1").await.unwrap()
    };
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    assert_eq!(deletion(done).await, Deletion::Gone);
    assert_eq!(deletion(live(1)).await, Deletion::Gone, "as it last was");
    let mut held = live(1);
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(deletion(held).await, Deletion::Begun);
}

#[tokio::test]
async fn deleting_what_is_gone_or_was_replaced_succeeds() {
    let rig = Rig::answering(not_found).await;
    let deletion = rig.cluster.delete(&replica_set(), "u-1").await.unwrap();
    assert_eq!(deletion, Deletion::Gone);

    let message = "Operation cannot be fulfilled on replicasets.apps \"app-1\": the UID in the \
        precondition (u-1) does not match the UID in record (u-2). The object might have been \
        deleted and then recreated";
    let rig = Rig::new(|_| Answer::json(409, &status(409, "Conflict", message))).await;
    rig.cluster.delete(&replica_set(), "u-1").await.unwrap();
}

#[tokio::test]
async fn a_delete_is_not_done_on_a_404_or_409_about_something_else() {
    let rig = Rig::answering(no_such_api).await;
    let refusal = rig.cluster.delete(&replica_set(), "u-1").await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::KindMissing);

    let other = || {
        Answer::json(
            409,
            &status(409, "Conflict", "the object has been modified"),
        )
    };
    let rig = Rig::answering(other).await;
    let refusal = rig.cluster.delete(&replica_set(), "u-1").await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::Reevaluate);
}

#[tokio::test]
async fn metadata_asks_for_metadata_only() {
    let rig = Rig::answering(|| {
        Answer::json(
            200,
            &json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "app-1", "namespace": "ws-1", "uid": "u-1",
                    "labels": {"app.kubernetes.io/managed-by": "krane"},
                    "deletionTimestamp": "2026-01-01T00:00:00Z"},
            }),
        )
    })
    .await;
    let metadata = rig.cluster.metadata(&replica_set()).await.unwrap().unwrap();
    assert!(metadata.is_ours() && metadata.is_terminating);
    assert_eq!(&*metadata.uid, "u-1");
    assert_eq!(
        rig.server.only_request().headers["accept"],
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    );
}

#[tokio::test]
async fn an_absent_object_is_none_and_an_absent_namespace_too() {
    let rig = Rig::answering(not_found).await;
    assert_eq!(rig.cluster.metadata(&replica_set()).await.unwrap(), None);
    assert!(rig.cluster.get(&replica_set()).await.unwrap().is_none());

    let rig = Rig::answering(|| {
        let mut body = status(404, "NotFound", "namespaces \"ws-1\" not found");
        body["details"] = json!({"name": "ws-1", "kind": "namespaces"});
        Answer::json(404, &body)
    })
    .await;
    assert_eq!(rig.cluster.metadata(&replica_set()).await.unwrap(), None);
    let namespace = ObjectRef::new(Resource::Namespace, "", "ws-1");
    assert_eq!(rig.cluster.metadata(&namespace).await.unwrap(), None);
    let refusal = rig.cluster.apply(&rendered(), None).await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::NamespaceMissing);
}

/// A create with force would take over an object that is there, so "absent" must be certain.
#[tokio::test]
async fn a_404_that_does_not_name_the_object_is_no_proof_of_absence() {
    let vague = || Answer::json(404, &status(404, "NotFound", "not found"));
    let html = || Answer::text(404, "text/html", "<html>no such page</html>");
    let ours = Rig::answering(vague)
        .await
        .cluster
        .metadata(&replica_set())
        .await;
    let page = Rig::answering(html)
        .await
        .cluster
        .metadata(&replica_set())
        .await;
    let plain = Rig::answering(no_such_api)
        .await
        .cluster
        .metadata(&replica_set())
        .await;
    assert_eq!(ours.unwrap_err().class, RefusalClass::Reevaluate);
    assert_eq!(page.unwrap_err().class, RefusalClass::KindMissing);
    assert_eq!(plain.unwrap_err().class, RefusalClass::KindMissing);
}

#[tokio::test]
async fn an_answer_about_another_object_is_not_believed() {
    let rig = Rig::answering(|| Answer::json(200, &live(7))).await;
    let other = ObjectRef::new(Resource::ReplicaSet, "ws-1", "app-2");
    let refusal = rig.cluster.get(&other).await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::Transient);
    assert!(rig.cluster.metadata(&other).await.is_err());
}

#[tokio::test]
async fn a_request_without_a_name_never_leaves() {
    let rig = Rig::answering(|| Answer::json(200, &json!({}))).await;
    let nameless = ObjectRef::new(Resource::ReplicaSet, "ws-1", "");
    let refusal = rig.cluster.delete(&nameless, "u-1").await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::Permanent);
    assert!(rig.server.requests().is_empty());
}

#[tokio::test]
async fn a_manifest_over_3_mib_is_refused_here_with_its_size() {
    let rig = Rig::answering(|| Answer::json(200, &live(1))).await;
    let mut object = rendered();
    object.body["spec"]["padding"] = json!("x".repeat(3 << 20));
    let refusal = rig.cluster.apply(&object, None).await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::Permanent);
    assert!(refusal.message.contains("bytes is over"), "{refusal}");
    assert!(rig.server.requests().is_empty());
}

#[tokio::test]
async fn what_the_server_says_about_a_secret_is_withheld() {
    let rig = Rig::answering(|| {
        Answer::json(
            422,
            &status(422, "Invalid", "data[x]: Invalid value: \"hunter2\""),
        )
    })
    .await;
    let mut object = rendered();
    object.reference = ObjectRef::new(Resource::Secret, "ws-1", "depot-pull-secret");
    let refusal = rig.cluster.apply(&object, None).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Permanent, 422)
    );
    assert!(!refusal.to_string().contains("hunter2"));
}

#[tokio::test]
async fn the_observer_hears_verb_resource_and_code_of_every_request() {
    let rig = Rig::new(|seen| match seen.method.as_str() {
        "PATCH" => Answer::json(200, &live(7)),
        "DELETE" => not_found(),
        _ => Answer::Close,
    })
    .await;
    rig.cluster.apply(&rendered(), None).await.unwrap();
    rig.cluster.delete(&replica_set(), "u-1").await.unwrap();
    rig.cluster.get(&replica_set()).await.unwrap_err();
    let heard = rig.recorder.0.lock().unwrap().clone();
    let expected = [("apply", "200"), ("delete", "404"), ("get", "<error>")];
    assert_eq!(
        heard,
        expected.map(|(verb, code)| (verb, "replicasets", code.to_owned()))
    );
}
