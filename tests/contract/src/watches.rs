//! Watches.

use futures::StreamExt;
use krane_domain::object::Resource;
use krane_ports::{Item, WatchEnd, WatchEvent};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ENV, Events, PATIENCE, World, merge, object};

pub async fn a_watch_goes_on_where_the_list_ended(world: World) {
    let before = world.apply(&world.rendered("before")).await;
    let listed = world.list(Resource::ReplicaSet).await;
    let [item] = &listed.items[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(object(item).uid, before.uid);
    assert_eq!(object(item).fingerprint, before.fingerprint);

    let mut between = world.rendered("between");
    let created = world.apply(&between).await;
    let mut events = world
        .watch(Resource::ReplicaSet, &listed.resource_version)
        .await;
    let first = events.of(&created.uid).await;
    assert!(matches!(&first, WatchEvent::Applied(item) if *object(item) == created));

    merge(&mut between.body, ENV, json!([{"name": "A", "value": "1"}]));
    let changed = world.apply(&between).await;
    // The ReplicaSet's controller writes its status in between.
    let seen = loop {
        match events.of(&created.uid).await {
            WatchEvent::Applied(Item::Object(seen))
                if seen.resource_version >= changed.resource_version =>
            {
                break seen;
            }
            WatchEvent::Applied(item) => {
                assert_eq!(object(&item).fingerprint, created.fingerprint);
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(seen.fingerprint, changed.fingerprint);

    world
        .cluster
        .delete(&between.reference, &created.uid)
        .await
        .unwrap();
    while !matches!(events.of(&created.uid).await, WatchEvent::Deleted(_)) {}
}

/// By the event alone it cannot be told from a delete, so one read decides (D15).
pub async fn an_object_that_loses_the_label_leaves_the_watch_as_if_deleted(world: World) {
    let object = world.policy("policy-1", &json!("8080"));
    let created = world.apply(&object).await;
    let listed = world.list(Resource::CiliumNetworkPolicy).await;
    let mut events = world
        .watch(Resource::CiliumNetworkPolicy, &listed.resource_version)
        .await;
    let label =
        |value: Value| json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": value}}});
    world
        .admin
        .merge(&object.reference, label(json!(null)))
        .await;
    let left = events.deleted().await;
    assert_eq!((&left.uid, left.is_terminating), (&created.uid, false));
    let live = world.live(&object.reference).await;
    assert_eq!((&live.uid, live.is_ours()), (&created.uid, false));
    world
        .admin
        .merge(&object.reference, label(json!("krane")))
        .await;
    assert_eq!(events.applied().await.uid, created.uid);
    world.admin.delete(&object.reference).await;
    assert_eq!(events.deleted().await.uid, created.uid);
    assert!(
        world
            .cluster
            .get(&object.reference)
            .await
            .unwrap()
            .is_none()
    );
}

pub async fn a_watch_gets_bookmarks_and_is_closed_in_time(world: World) {
    let listed = world.list(Resource::ReplicaSet).await;
    let from = &listed.resource_version;
    let spec = world.spec(Resource::ReplicaSet);
    let mut bookmark = None;
    // The server sends one in the last two seconds of a watch, which a busy machine may miss.
    for _ in 0..5 {
        let mut events = Events(world.hasty.watch(&spec, from).await.unwrap());
        loop {
            match events.next().await {
                WatchEvent::Bookmark(version) => bookmark = Some(version),
                WatchEvent::Ended(end) => {
                    assert_eq!(end, WatchEnd::Closed);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(timeout(PATIENCE, events.0.next()).await.unwrap().is_none());
        if bookmark.is_some() {
            break;
        }
    }
    let version: u64 = bookmark.unwrap().parse().unwrap();
    assert!(version >= from.parse().unwrap());
}

pub async fn a_version_that_is_too_old_asks_for_a_new_list(world: World) {
    let expired = world.admin.expired_version().await;
    let mut events = world.watch(Resource::CiliumNetworkPolicy, &expired).await;
    match events.next().await {
        WatchEvent::Ended(end) => assert_eq!(end, WatchEnd::Expired),
        other => panic!("{other:?}"),
    }
    assert!(timeout(PATIENCE, events.0.next()).await.unwrap().is_none());
}

/// In a cluster restored from a backup the last version seen may be yet to come: when others pass
/// it, such a watch works and never tells what it missed (F3).
pub async fn a_watch_from_a_version_to_come_tells_only_what_comes_after_it(world: World) {
    let listed = world.list(Resource::CiliumNetworkPolicy).await;
    let from = listed.resource_version.parse::<u64>().unwrap() + 60;
    let mut events = world
        .watch(Resource::CiliumNetworkPolicy, &from.to_string())
        .await;
    let mut port = 8000;
    let passed = loop {
        port += 1;
        let policy = world.policy("policy-1", &json!(port.to_string()));
        let version = world.apply(&policy).await.resource_version;
        if version > from {
            break version;
        }
    };
    assert!(port > 8001, "it was passed at once: nothing is shown");
    assert_eq!(events.applied().await.resource_version, passed);
}

pub async fn pods_are_told_as_digests(world: World) {
    let listed = world.list(Resource::Pod).await;
    assert!(listed.items.is_empty());
    let mut events = world.watch(Resource::Pod, &listed.resource_version).await;
    let reference = world.reference(Resource::Pod, "pod-1");
    let mut body = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": world.metadata("pod-1"),
        "spec": {"containers": [{
            "name": "app", "image": "registry.example/app:1",
            "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
        }]},
    });
    body["metadata"]["annotations"] = json!({"krane.unkey.com/template": "abc"});
    world.admin.create(&reference, body).await;
    let WatchEvent::Applied(Item::Pod(pod)) = events.news().await else {
        panic!("no pod")
    };
    assert_eq!(
        (&*pod.namespace, &*pod.name),
        (world.namespace.as_str(), "pod-1")
    );
    assert_eq!((pod.cpu_millicores, pod.memory_mib), (1500, 1024));
    assert_eq!(pod.template.as_deref(), Some("abc"));
    let listed = world.list(Resource::Pod).await;
    let [Item::Pod(found)] = &listed.items[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(found.uid, pod.uid);
}
