//! Applies and what refuses them.

use krane_domain::object::Resource;
use krane_domain::refusal::RefusalClass;
use serde_json::{Value, json};

use super::{ENV, World, eventually, merge};

pub async fn an_apply_creates_and_the_same_again_changes_nothing(world: World) {
    for object in [
        world.rendered("app-1"),
        world.policy("policy-1", &json!("8080")),
    ] {
        let created = world.apply(&object).await;
        assert_eq!(created.reference, object.reference);
        assert!(created.is_ours() && !created.is_terminating && !created.uid.is_empty());
        // A controller may write its status in between, but not for ever.
        eventually(async || {
            let before = world.live(&object.reference).await;
            let again = world
                .cluster
                .apply(&object, Some(&created.uid))
                .await
                .unwrap();
            assert_eq!(again.fingerprint, created.fingerprint);
            (again == before).then_some(())
        })
        .await;
    }
}

pub async fn an_apply_removes_what_is_no_longer_rendered_and_keeps_what_others_added(world: World) {
    let mut object = world.rendered("app-1");
    let before = world.apply(&object).await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "mine"}}});
    world.admin.merge(&object.reference, note).await;
    merge(
        &mut object.body,
        ENV,
        json!([{"name": "SECOND", "value": "3"}]),
    );
    let after = world
        .cluster
        .apply(&object, Some(&before.uid))
        .await
        .unwrap();
    assert!(after.resource_version > before.resource_version);
    assert_ne!(after.fingerprint, before.fingerprint);
    assert_eq!(after.uid, before.uid);
    let value = after.value();
    assert_eq!(
        value.pointer(ENV),
        Some(&json!([{"name": "SECOND", "value": "3"}]))
    );
    assert_eq!(value["metadata"]["annotations"]["example.com/note"], "mine");
}

pub async fn an_apply_takes_a_field_back_from_another_manager(world: World) {
    let object = world.rendered("app-1");
    let created = world.apply(&object).await;
    world
        .admin
        .merge(&object.reference, json!({"spec": {"replicas": 3}}))
        .await;
    assert_eq!(
        world.live(&object.reference).await.value()["spec"]["replicas"],
        3
    );
    let repaired = world
        .cluster
        .apply(&object, Some(&created.uid))
        .await
        .unwrap();
    assert_eq!(repaired.value()["spec"]["replicas"], 0);
}

pub async fn an_apply_meant_for_an_object_that_is_gone_creates_nothing(world: World) {
    let object = world.rendered("app-1");
    let gone = "00000000-0000-4000-8000-000000000000";
    let refusal = world.refused(&object, Some(gone)).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Reevaluate, 409)
    );
    assert!(
        world
            .cluster
            .get(&object.reference)
            .await
            .unwrap()
            .is_none()
    );
}

pub async fn an_apply_meant_for_another_object_of_the_name_changes_nothing(world: World) {
    let mut object = world.rendered("app-1");
    let first = world.apply(&object).await;
    world
        .cluster
        .delete(&object.reference, &first.uid)
        .await
        .unwrap();
    eventually(async || {
        world
            .cluster
            .get(&object.reference)
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    let second = world.apply(&object).await;
    assert_ne!(second.uid, first.uid);
    merge(&mut object.body, "/spec/replicas", json!(2));
    let refusal = world.refused(&object, Some(&first.uid)).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Reevaluate, 422)
    );
    let live = world.live(&object.reference).await;
    assert_eq!(
        (live.uid, live.fingerprint),
        (second.uid, second.fingerprint)
    );
}

pub async fn an_apply_without_its_namespace_says_so(mut world: World) {
    world.namespace.push_str("-absent");
    let object = world.rendered("app-1");
    let refusal = world.refused(&object, None).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::NamespaceMissing, 404)
    );
    assert!(
        world
            .cluster
            .get(&object.reference)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        world
            .cluster
            .metadata(&object.reference)
            .await
            .unwrap()
            .is_none()
    );
    let namespace = world.reference(Resource::Namespace, &world.namespace);
    assert!(world.cluster.metadata(&namespace).await.unwrap().is_none());
    world
        .cluster
        .delete(&object.reference, "any")
        .await
        .unwrap();
}

pub async fn a_terminating_namespace_takes_no_new_object(world: World) {
    let namespace = world.reference(Resource::Namespace, &world.namespace);
    assert!(
        !world
            .cluster
            .metadata(&namespace)
            .await
            .unwrap()
            .unwrap()
            .is_terminating
    );
    world.admin.terminate_namespace(&world.namespace).await;
    assert!(
        world
            .cluster
            .metadata(&namespace)
            .await
            .unwrap()
            .unwrap()
            .is_terminating
    );
    let object = world.rendered("app-1");
    let refusal = eventually(async || world.cluster.apply(&object, None).await.err()).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::NamespaceTerminating, 403)
    );
}

pub async fn a_selector_cannot_change(world: World) {
    let mut object = world.rendered("app-1");
    world.apply(&object).await;
    merge(
        &mut object.body,
        "/spec/selector/matchLabels",
        json!({"app": "other"}),
    );
    merge(
        &mut object.body,
        "/spec/template/metadata/labels",
        json!({"app": "other"}),
    );
    let refusal = world.refused(&object, None).await;
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Permanent, 422)
    );
    assert!(refusal.message.contains("immutable"), "{refusal}");
}

pub async fn what_does_not_fit_the_schema_is_permanent(world: World) {
    let broken = |pointer: &str, value: Value| {
        let mut object = world.rendered("app-1");
        merge(&mut object.body, pointer, value);
        object
    };
    let twice = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    for object in [
        broken(
            "/spec/selector",
            json!({"matchLabels": {"app": "app-1"}, "misspelt": 1}),
        ),
        broken(ENV, twice),
        broken(ENV, json!([{"name": "A", "value": 1}])),
        broken(
            "/spec/template/spec/containers/0/resources/limits/cpu",
            json!("many"),
        ),
        broken("/spec/replicas", json!(-1)),
        broken("/metadata/name", json!("another")),
        broken("/apiVersion", json!("apps/v9")),
        world.policy("policy-1", &json!(8080)),
    ] {
        let refusal = world.refused(&object, None).await;
        assert_eq!(refusal.class, RefusalClass::Permanent, "{refusal}");
        assert!(!refusal.message.is_empty());
    }
    let reference = world.reference(Resource::ReplicaSet, "app-1");
    assert!(world.cluster.get(&reference).await.unwrap().is_none());
}
