//! Deletes, reads and lists.

use futures::StreamExt;
use futures::stream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{Rendered, Resource};
use krane_ports::{Deletion, Item};
use serde_json::json;

use super::{Events, World, eventually, merge, object};

pub async fn a_delete_hits_only_the_object_of_its_uid(world: World) {
    let object = world.rendered("app-1");
    let live = world.apply(&object).await;
    let other = "00000000-0000-4000-8000-000000000000";
    world
        .cluster
        .delete(&object.reference, other)
        .await
        .unwrap();
    assert_eq!(world.live(&object.reference).await.uid, live.uid);
    world
        .cluster
        .delete(&object.reference, &live.uid)
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
    world
        .cluster
        .delete(&object.reference, &live.uid)
        .await
        .unwrap();
}

pub async fn what_a_finalizer_holds_is_on_its_way_out_and_not_gone(world: World) {
    let object = world.rendered("app-1");
    let live = world.apply(&object).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world.admin.merge(&object.reference, hold).await;
    for _ in 0..2 {
        let deletion = world.cluster.delete(&object.reference, &live.uid).await;
        assert_eq!(deletion.unwrap(), Deletion::Begun);
    }
    assert!(world.live(&object.reference).await.is_terminating);
    let release = json!({"metadata": {"finalizers": null}});
    world.admin.merge(&object.reference, release).await;
    eventually(async || {
        let found = world.cluster.get(&object.reference).await.unwrap();
        found.is_none().then_some(())
    })
    .await;
    let free = world.rendered("app-2");
    let uid = world.apply(&free).await.uid;
    for _ in 0..2 {
        let deletion = world.cluster.delete(&free.reference, &uid).await;
        assert_eq!(deletion.unwrap(), Deletion::Gone);
    }
}

pub async fn metadata_shows_whose_an_object_is(world: World) {
    let reference = world.reference(Resource::ReplicaSet, "app-1");
    assert!(world.cluster.metadata(&reference).await.unwrap().is_none());
    let mut body = world.rendered("app-1").body;
    merge(&mut body, "/metadata/labels", json!({"app": "theirs"}));
    world.admin.create(&reference, body).await;
    let metadata = world.cluster.metadata(&reference).await.unwrap().unwrap();
    assert!(!metadata.is_ours() && !metadata.is_terminating);
    assert_eq!(metadata.labels["app"], "theirs");
    assert_eq!(metadata.uid, world.live(&reference).await.uid);
}

pub async fn a_list_holds_everything_it_selects_however_many_pages_it_takes(world: World) {
    const COUNT: usize = 510;
    let (world, names) = (&world, (0..COUNT).map(|number| format!("app-{number:04}")));
    let names: Vec<_> = names.collect();
    stream::iter(&names)
        .for_each_concurrent(16, |name| async move {
            world.apply(&world.rendered(name)).await;
        })
        .await;
    let mut unlabelled = world.rendered("unlabelled").body;
    merge(&mut unlabelled, "/metadata/labels", json!({}));
    let reference = world.reference(Resource::ReplicaSet, "unlabelled");
    world.admin.create(&reference, unlabelled).await;

    let listed = world.list(Resource::ReplicaSet).await;
    let version: u64 = listed.resource_version.parse().unwrap();
    assert!(
        listed
            .items
            .iter()
            .all(|item| object(item).resource_version <= version)
    );
    let mut found: Vec<_> = listed
        .items
        .iter()
        .map(|item| object(item).reference.name.to_string())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

/// The only way in which krane may list Secrets: by the field selector of that one name.
pub async fn the_pull_secret_is_found_by_its_name_in_every_namespace(world: World) {
    let spec = WatchSpec {
        resource: Resource::Secret,
        namespace: None,
        label_selector: String::new(),
        field_selector: "metadata.name=depot-pull-secret".to_owned(),
    };
    let listed = world.cluster.list(&spec).await.unwrap();
    let mut events = Events(
        world
            .cluster
            .watch(&spec, &listed.resource_version)
            .await
            .unwrap(),
    );
    let mut metadata = world.metadata("depot-pull-secret");
    metadata["labels"]["app.kubernetes.io/component"] = json!("pull-secret");
    let secret = Rendered::new(
        world.reference(Resource::Secret, "depot-pull-secret"),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": "eyJhdXRocyI6e319"},
        }),
    );
    let created = world.apply(&secret).await;
    assert_eq!(events.applied().await, created);
    let listed = world.cluster.list(&spec).await.unwrap();
    assert!(listed.items.iter().any(|item| *object(item) == created));
}

/// Behind a load balancer another API server may answer it (F3).
pub async fn a_list_over_a_new_connection_holds_the_same(world: World) {
    let live = world.apply(&world.rendered("one")).await;
    let spec = world.spec(Resource::ReplicaSet);
    for _ in 0..2 {
        let listed = world.cluster.list_anew(&spec).await.unwrap();
        let [Item::Object(found)] = &listed.items[..] else {
            panic!("{listed:?}")
        };
        assert_eq!(found.uid, live.uid);
        let version: u64 = listed.resource_version.parse().unwrap();
        assert!(version >= live.resource_version);
    }
}
