//! What a person with `edit` in some namespace can do to open the key ring of another one (X4).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use krane_domain::labels;
use krane_domain::object::{ObjectRef, Resource};
use krane_sim::cluster::Patch;
use krane_testcontract::tokens::Class;
use serde_json::{Value, json};

use super::world::{NAMESPACE, PATIENCE, Subject, TokenWorld, pass};

/// After this long without a message the stream has been read whole.
const READ_WHOLE: Duration = Duration::from_secs(12);
/// The namespace of whoever forges.
const OUTSIDE: &str = "outside";
/// The cluster in memory begins at midnight of that day.
const HOLD: &str = "2026-01-01T20:00:00Z";

impl TokenWorld {
    /// The pod of a ReplicaSet of one's own in another namespace: the deployment's labels, template
    /// and blob, and its id or an invented one.
    pub(super) async fn forge(&self, class: Class, subject: &Subject) -> Result<ObjectRef, String> {
        // Where the forger may create objects, and the environment has none.
        let (name, id) = (format!("outsider-{}", name_of(class)), name_of(class));
        let id = format!("d_outsider_{id}");
        self.workload(OUTSIDE, &name, &id, "env_outsider").await?;
        pass(READ_WHOLE).await;
        let mut set = self.replica_set(&name_of(class))?;
        set["metadata"] = json!({
            "name": format!("forged-{}", name_of(class)),
            "namespace": OUTSIDE,
            "labels": set["metadata"]["labels"],
            "annotations": {labels::HOLD_ANNOTATION: HOLD},
        });
        if let Some(set) = set.as_object_mut() {
            set.remove("status");
        }
        let id = Value::from(&*subject.deployment_id);
        for labels in ["/metadata/labels", "/spec/selector/matchLabels"] {
            set.pointer_mut(labels).ok_or("it has none")?[labels::DEPLOYMENT_ID] = id.clone();
        }
        let template = &mut set["spec"]["template"]["metadata"];
        template["labels"][labels::DEPLOYMENT_ID] = id.clone();
        template["annotations"][labels::DEPLOYMENT_ID] = id;
        if class == Class::SchedulerMark {
            set["metadata"]["labels"][labels::DESIRED_BY] = json!(labels::SCHEDULER);
        }
        let made = self.admin().create(set, "somebody");
        made.map_err(|status| status.message)?;
        self.pod_of(OUTSIDE, &subject.deployment_id).await
    }

    /// A new pod of the deployment's own ReplicaSet, whose template now has the environment id and
    /// the blob that the subject asks for.
    pub(super) async fn change_template(
        &self,
        class: Class,
        subject: &Subject,
        old: &ObjectRef,
    ) -> Result<ObjectRef, String> {
        pass(READ_WHOLE).await;
        let mut set = self.replica_set(&name_of(class))?;
        let id = &*subject.environment_id;
        let template = &mut set["spec"]["template"];
        template["metadata"]["labels"][labels::ENVIRONMENT_ID] = json!(id);
        template["metadata"]["annotations"][labels::ENVIRONMENT_ID] = json!(id);
        let variables = template["spec"]["containers"][0]["env"].as_array_mut();
        for variable in variables.into_iter().flatten() {
            if variable["name"] == "UNKEY_ENCRYPTED_ENV" {
                variable["value"] = json!(subject.encoded());
            }
        }
        let mut patch = json!({
            "metadata": {"annotations": {labels::HOLD_ANNOTATION: HOLD}},
            "spec": {"template": template},
        });
        if class == Class::PatchedReplicaSet {
            patch["metadata"]["labels"] = json!({labels::ENVIRONMENT_ID: id});
        }
        let admin = self.admin();
        let object = ObjectRef::new(Resource::ReplicaSet, NAMESPACE, name_of(class));
        let patched = admin.patch(&object, "somebody", "", &Patch::Merge(patch));
        patched.map_err(|status| status.message)?;
        self.remove(old).await?;
        for _ in 0..PATIENCE {
            let pods = admin.list("Pod", Some(NAMESPACE));
            let found = pods.iter().find(|pod| {
                pod["metadata"]["labels"][labels::DEPLOYMENT_ID] == *subject.deployment_id
                    && pod["metadata"]["labels"][labels::ENVIRONMENT_ID] == id
                    && pod["status"]["phase"] == "Running"
            });
            if let Some(name) = found.and_then(|pod| pod["metadata"]["name"].as_str()) {
                return Ok(ObjectRef::new(Resource::Pod, NAMESPACE, name));
            }
            pass(Duration::from_millis(100)).await;
        }
        Err("no pod of the changed template runs".to_owned())
    }

    /// Waits until a ReplicaSet makes its pods with this blob.
    pub(super) async fn template_has(&self, name: &str, blob: &[u8]) -> Result<(), String> {
        let object = ObjectRef::new(Resource::ReplicaSet, NAMESPACE, name);
        let encoded = STANDARD.encode(blob);
        for _ in 0..PATIENCE {
            let set = self.admin().get(&object);
            if set.is_some_and(|set| set.to_string().contains(&encoded)) {
                return Ok(());
            }
            pass(Duration::from_millis(100)).await;
        }
        Err(format!("the template of {name} keeps its blob"))
    }

    fn replica_set(&self, name: &str) -> Result<Value, String> {
        let object = ObjectRef::new(Resource::ReplicaSet, NAMESPACE, name);
        let set = self.admin().get(&object);
        set.ok_or_else(|| format!("there is no ReplicaSet {name}"))
    }
}

impl Subject {
    /// The blob as the pod has it.
    fn encoded(&self) -> String {
        STANDARD.encode(&self.blob)
    }
}

/// The name of the workload of a class.
pub(super) fn name_of(class: Class) -> String {
    format!("{class:?}").to_lowercase()
}
