//! The rehearsal over a cluster that takes nothing in.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use krane_domain::kinds::WatchSpec;
use krane_domain::labels;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Item, Listed, WatchEvent};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// Holds objects, answers writes and forgets them, as an API server does in a dry run.
#[derive(Default)]
struct Dry {
    objects: Mutex<BTreeMap<ObjectRef, Value>>,
    events: Mutex<Vec<WatchEvent>>,
    writes: Mutex<Vec<String>>,
}

fn refusal(class: RefusalClass) -> Refusal {
    Refusal {
        class,
        code: 400,
        message: "no".to_owned(),
        retry_after: None,
    }
}

impl Dry {
    fn put(&self, object: &ObjectRef, uid: &str, version: u64, replicas: u64) -> LiveObject {
        let body = body(object, uid, version, replicas);
        let live = LiveObject::from_json(object.resource, body.clone()).unwrap();
        self.objects.lock().insert(object.clone(), body);
        live
    }

    fn live(&self, object: &ObjectRef) -> Option<LiveObject> {
        let body = self.objects.lock().get(object).cloned()?;
        LiveObject::from_json(object.resource, body).ok()
    }

    fn has_namespace(&self, name: &Arc<str>) -> bool {
        let namespace = ObjectRef::new(Resource::Namespace, "", Arc::clone(name));
        self.objects.lock().contains_key(&namespace)
    }
}

#[async_trait]
impl Cluster for Dry {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let reference = &object.reference;
        self.writes
            .lock()
            .push(format!("apply {reference} {uid:?}"));
        if reference.resource.is_namespaced() && !self.has_namespace(&reference.namespace) {
            return Err(refusal(RefusalClass::NamespaceMissing));
        }
        if &*reference.name == "refused" {
            return Err(refusal(RefusalClass::Permanent));
        }
        let mut body = object.body.clone();
        body["metadata"]["uid"] = json!(uid.unwrap_or("fresh"));
        body["metadata"]["resourceVersion"] = json!("1");
        Ok(LiveObject::from_json(reference.resource, body).unwrap())
    }

    async fn adopt(&self, object: &ObjectRef, _: &str) -> Result<LiveObject, Refusal> {
        Ok(self.live(object).unwrap())
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        _: &str,
        _: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        panic!("{object} was put on hold by a rehearsal")
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        self.writes.lock().push(format!("delete {object} {uid}"));
        Ok(Deletion::Gone)
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        Ok(self.live(object).map(|live| Metadata {
            uid: live.uid,
            labels: live.labels,
            is_terminating: false,
        }))
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        Ok(self.live(object))
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let all = self.objects.lock();
        let of_kind = all.iter().filter(|(it, _)| it.resource == spec.resource);
        let items = of_kind.map(|(it, body)| {
            Item::Object(LiveObject::from_json(it.resource, body.clone()).unwrap())
        });
        Ok(Listed {
            items: items.collect(),
            undecodable: Vec::new(),
            resource_version: "9".to_owned(),
        })
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.list(spec).await
    }

    async fn watch(
        &self,
        _: &WatchSpec,
        _: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let events = std::mem::take(&mut *self.events.lock());
        Ok(futures::stream::iter(events).boxed())
    }
}

fn body(object: &ObjectRef, uid: &str, version: u64, replicas: u64) -> Value {
    json!({
        "apiVersion": object.resource.api_version(), "kind": object.resource.kind(),
        "metadata": {
            "namespace": &*object.namespace, "name": &*object.name, "uid": uid,
            "resourceVersion": version.to_string(), "labels": {labels::MANAGED_BY: "krane"},
        },
        "spec": {"replicas": replicas},
    })
}

fn rendered(object: &ObjectRef, replicas: u64) -> Rendered {
    let mut body = body(object, "", 0, replicas);
    let metadata = body["metadata"].as_object_mut().unwrap();
    metadata.remove("uid");
    metadata.remove("resourceVersion");
    Rendered::new(object.clone(), body)
}

fn app(name: &str) -> ObjectRef {
    ObjectRef::new(Resource::ReplicaSet, "ws-1", name)
}

fn namespace() -> ObjectRef {
    ObjectRef::new(Resource::Namespace, "", "ws-1")
}

fn spec() -> WatchSpec {
    WatchSpec {
        resource: Resource::ReplicaSet,
        namespace: None,
        label_selector: format!("{}=krane", labels::MANAGED_BY),
        field_selector: String::new(),
    }
}

struct Rig {
    dry: Arc<Dry>,
    journal: Arc<Journal>,
    rehearsal: Rehearsal,
}

fn rig() -> Rig {
    let (dry, journal) = (Arc::new(Dry::default()), Arc::new(Journal::default()));
    let cluster: Arc<dyn Cluster> = Arc::clone(&dry) as Arc<dyn Cluster>;
    let rehearsal = Rehearsal::new(cluster, Arc::default(), Arc::clone(&journal));
    Rig {
        dry,
        journal,
        rehearsal,
    }
}

impl Rig {
    fn entries(&self) -> Vec<(What, String, Vec<String>)> {
        let entries = self
            .journal
            .summary(Coverage::default())
            .entries
            .into_iter();
        entries
            .map(|entry| (entry.what, entry.object, entry.paths))
            .collect()
    }

    async fn listed(&self) -> Vec<String> {
        let listed = self.rehearsal.list(&spec()).await.unwrap();
        let names = listed.items.iter().map(|item| match item {
            Item::Object(live) => format!("{} {}", live.reference.name, live.uid),
            Item::Pod(pod) => pod.name.to_string(),
        });
        names.collect()
    }
}

#[tokio::test]
async fn what_would_be_made_is_there_until_the_real_one_comes() {
    let rig = rig();
    // Nobody can be asked in a namespace that is only rehearsed.
    rig.rehearsal
        .apply(&rendered(&namespace(), 0), None)
        .await
        .unwrap();
    let made = rig
        .rehearsal
        .apply(&rendered(&app("a"), 2), None)
        .await
        .unwrap();
    assert_eq!(made.resource_version, 1);
    assert_eq!(rig.listed().await, [format!("a {}", made.uid)]);
    let found = rig.rehearsal.get(&app("a")).await.unwrap().unwrap();
    assert_eq!(found.uid, made.uid);
    let metadata = rig.rehearsal.metadata(&app("a")).await.unwrap().unwrap();
    assert!(metadata.is_ours());
    assert_eq!(
        rig.entries(),
        [
            (What::Create, "Namespace ws-1".to_owned(), vec![]),
            (What::Create, "ReplicaSet ws-1/a".to_owned(), vec![]),
        ]
    );
    rig.dry.put(&app("a"), "real", 7, 2);
    assert_eq!(rig.listed().await, ["a real"]);
    let found = rig.rehearsal.get(&app("a")).await.unwrap().unwrap();
    assert_eq!(&*found.uid, "real");
}

#[tokio::test]
async fn a_change_leaves_the_real_object_the_truth() {
    let rig = rig();
    rig.dry.put(&namespace(), "ns", 3, 0);
    rig.dry.put(&app("a"), "u-1", 7, 1);
    let wanted = rendered(&app("a"), 4);
    rig.rehearsal.apply(&wanted, Some("u-1")).await.unwrap();
    assert_eq!(
        rig.entries(),
        [(
            What::Update,
            "ReplicaSet ws-1/a".to_owned(),
            vec!["spec.replicas".to_owned()]
        )]
    );
    let live = rig.rehearsal.get(&app("a")).await.unwrap().unwrap();
    assert_eq!(live.value()["spec"]["replicas"], 1);
    assert_eq!(rig.dry.writes.lock().len(), 1);
}

#[tokio::test]
async fn what_would_be_gone_is_out_of_sight_while_it_is_the_same_object() {
    let rig = rig();
    rig.dry.put(&namespace(), "ns", 3, 0);
    let live = rig.dry.put(&app("a"), "u-1", 7, 1);
    let deleted = rig.rehearsal.delete(&app("a"), "u-1").await.unwrap();
    assert_eq!(deleted, Deletion::Gone);
    assert_eq!(rig.listed().await, Vec::<String>::new());
    assert!(rig.rehearsal.get(&app("a")).await.unwrap().is_none());
    assert!(rig.rehearsal.metadata(&app("a")).await.unwrap().is_none());
    // Its status goes on changing: no news for who has deleted it.
    rig.dry
        .events
        .lock()
        .push(WatchEvent::Applied(Item::Object(live)));
    let mut events = rig.rehearsal.watch(&spec(), "9").await.unwrap();
    let event = events.next().await.unwrap();
    assert!(
        matches!(&event, WatchEvent::Bookmark(version) if version == "7"),
        "{event:?}"
    );
    // Somebody else makes another one of that name.
    let other = rig.dry.put(&app("a"), "u-2", 8, 1);
    rig.dry
        .events
        .lock()
        .push(WatchEvent::Applied(Item::Object(other)));
    let mut events = rig.rehearsal.watch(&spec(), "9").await.unwrap();
    let event = events.next().await.unwrap();
    assert!(matches!(event, WatchEvent::Applied(_)), "{event:?}");
    assert_eq!(rig.listed().await, ["a u-2"]);
}

#[tokio::test]
async fn what_would_be_made_and_deleted_again_was_nothing() {
    let rig = rig();
    rig.dry.put(&namespace(), "ns", 3, 0);
    let made = rig
        .rehearsal
        .apply(&rendered(&app("a"), 2), None)
        .await
        .unwrap();
    rig.rehearsal.delete(&app("a"), &made.uid).await.unwrap();
    assert_eq!(rig.entries(), []);
    assert_eq!(rig.listed().await, Vec::<String>::new());
    let writes = rig.dry.writes.lock().clone();
    assert_eq!(
        writes,
        ["apply ReplicaSet ws-1/a None"],
        "nothing to delete"
    );
}

#[tokio::test]
async fn a_refusal_is_told_and_passed_on() {
    let rig = rig();
    rig.dry.put(&namespace(), "ns", 3, 0);
    let refused = rendered(&app("refused"), 1);
    let answer = rig.rehearsal.apply(&refused, None).await;
    assert_eq!(answer.unwrap_err().class, RefusalClass::Permanent);
    let entry = &rig.journal.summary(Coverage::default()).entries[0];
    assert_eq!(entry.what, What::Refused);
    assert!(entry.why.as_deref().unwrap().contains("no"));
}

#[tokio::test]
async fn the_same_change_of_the_same_object_is_asked_about_once() {
    let rig = rig();
    rig.dry.put(&namespace(), "ns", 3, 0);
    rig.dry.put(&app("a"), "u", 4, 1);
    let change = async |replicas| {
        let changed = rendered(&app("a"), replicas);
        rig.rehearsal.apply(&changed, Some("u")).await.unwrap();
        rig.dry.writes.lock().len()
    };
    assert_eq!(change(2).await, 1);
    assert_eq!(change(2).await, 1, "it is known");
    assert_eq!(rig.entries().len(), 1);
    assert_eq!(change(3).await, 2, "another rendering");
    rig.rehearsal.list(&spec()).await.unwrap();
    assert_eq!(change(3).await, 2, "seen in the same version");
    rig.dry.put(&app("a"), "u", 5, 1);
    rig.rehearsal.list(&spec()).await.unwrap();
    assert_eq!(change(3).await, 3, "seen in another version");
}
