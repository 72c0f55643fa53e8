//! Workloads whose pods have tokens, and what goes wrong with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_actors::chance::Chance;
use krane_actors::secrets::{SecretsClient, SecretsParts};
use krane_actors::status::StatusBoard;
use krane_domain::kinds::deployment::{self, DeploymentInput};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::labels;
use krane_domain::object::{Metadata, ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};
use krane_ports::{Identities, Vault, VaultFailure};
use krane_sim::cluster::{Admin, Patch, SimClient, SimCluster};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::vault::{SimVault, unavailable};
use krane_supervision::root::RootHandle;
use krane_testcontract::tokens::{Backend, Class};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::forgery::name_of;
use crate::assembly::{self, Process};
use crate::kinds::index;

const SEED: u64 = 11;
pub(super) const NAMESPACE: &str = "tenant";
const ELSEWHERE: &str = "tenant-2";
/// A slow vault, and how soon the pods of a workload run.
const SLOW: Duration = Duration::from_secs(4);
pub(super) const PATIENCE: u32 = 600;

/// A workload that asks, and what it asks for.
pub(super) struct Subject {
    pub(super) deployment_id: String,
    pub(super) environment_id: String,
    pub(super) blob: Vec<u8>,
    pub(super) plaintext: String,
    /// A good blob that belongs to somebody else.
    pub(super) foreign_blob: Vec<u8>,
    pod: ObjectRef,
}

/// The agent with its cluster and its vault.
pub(super) struct TokenWorld {
    pub(super) desk: SecretsClient,
    pub(super) vault: Arc<TestVault>,
    identities: Arc<Rewriting>,
    cluster: SimCluster,
    control: SimControlPlane,
    audience: Option<&'static str>,
    root: RootHandle,
    _tasks: JoinSet<()>,
}

impl TokenWorld {
    pub(super) async fn start(audience: Option<&'static str>) -> Result<Self, String> {
        let mut tasks = JoinSet::new();
        let cluster = assembly::cluster(SEED, &mut tasks);
        let controls = [0, 1, 2].map(|number| SimControlPlane::new(SEED ^ number));
        let identities = Arc::new(Rewriting {
            client: cluster.client(),
            class: Mutex::new(Class::Valid),
            recorded: Mutex::default(),
        });
        let vault = Arc::new(TestVault {
            inner: SimVault::default(),
            state: Mutex::new(Backend::Well),
        });
        let process = Process {
            board: StatusBoard::new(),
            rules: Rules {
                secrets_audience: audience.map(Into::into),
                ..Rules::default()
            },
            began: Instant::now(),
            seed: SEED,
            heartbeat: Arc::new(controls[0].clone()),
            secrets: Some(SecretsParts {
                identities: identities.clone(),
                vault: vault.clone(),
                audience: audience.map(Into::into),
                chance: Chance::new(SEED),
            }),
            election: None,
        };
        let client = cluster.client();
        let agent = process.agent(|controller| {
            let control = controls[index(controller)].clone();
            (Arc::new(client.clone()), Arc::new(control))
        })?;
        let desk = agent.secrets().ok_or("there is no desk")?;
        let root = agent.start(assembly::servers()).await;
        let [control, ..] = controls;
        Ok(Self {
            desk,
            vault,
            identities,
            cluster,
            control,
            audience,
            root: root.map_err(|problem| problem.to_string())?,
            _tasks: tasks,
        })
    }

    pub(super) async fn stop(&self) {
        let _ = self.root.stop().await;
    }

    pub(super) fn admin(&self) -> Admin {
        self.cluster.admin()
    }

    /// A workload of its own for this class, with one running pod.
    pub(super) async fn subject(&self, class: Class) -> Result<Subject, String> {
        let name = name_of(class);
        let id = format!("d_{name}");
        let mut subject = self.workload(NAMESPACE, &name, &id, "env_1").await?;
        match class {
            Class::InventedDeployment | Class::SchedulerMark => {
                subject.deployment_id = format!("d_invented_{name}");
            }
            Class::PatchedTemplate | Class::PatchedReplicaSet => {
                let victim = format!("victim-{name}");
                let id = format!("d_{victim}");
                let victim = self.workload(ELSEWHERE, &victim, &id, "env_victim").await?;
                subject.environment_id = victim.environment_id;
                subject.blob = victim.blob;
                subject.plaintext = victim.plaintext;
            }
            _ => {}
        }
        Ok(subject)
    }

    /// So many workloads with so many variables each, and their running pods.
    pub(super) async fn many(
        &self,
        workloads: u64,
        variables: usize,
    ) -> Result<Vec<Subject>, String> {
        let plaintext = "a value of some length";
        let names: Vec<String> = (0..variables)
            .map(|each| format!("VARIABLE_{each}"))
            .collect();
        let all: Vec<_> = names.iter().map(|name| (&**name, plaintext)).collect();
        let mut wanted = Vec::new();
        for number in 0..workloads {
            let blob = self.vault.inner.blob("env_1", &all);
            let (name, id) = (format!("app-{number}"), format!("d_{number}"));
            self.want(NAMESPACE, &name, &id, "env_1", &blob)?;
            wanted.push((id, blob));
        }
        let mut subjects = Vec::new();
        for (deployment_id, blob) in wanted {
            subjects.push(Subject {
                pod: self.pod_of(NAMESPACE, &deployment_id).await?,
                deployment_id,
                environment_id: "env_1".to_owned(),
                blob,
                plaintext: plaintext.to_owned(),
                foreign_blob: Vec::new(),
            });
        }
        Ok(subjects)
    }

    /// The token of the subject's own pod.
    pub(super) fn own_token(&self, subject: &Subject) -> Result<Secret, String> {
        let pod = &subject.pod;
        let audiences: Vec<&str> = self.audience.into_iter().collect();
        let token = self
            .cluster
            .tokens()
            .for_pod(&pod.namespace, &pod.name, &audiences);
        token.ok_or_else(|| format!("there is no pod {pod}"))
    }

    pub(super) async fn workload(
        &self,
        namespace: &str,
        name: &str,
        deployment_id: &str,
        environment_id: &str,
    ) -> Result<Subject, String> {
        let plaintext = format!("plain of {name}");
        let vault = &self.vault.inner;
        let blob = |first: &str| vault.blob(environment_id, &[("A", first), ("B", "second")]);
        let (blob, foreign_blob) = (blob(&plaintext), blob("foreign"));
        self.want(namespace, name, deployment_id, environment_id, &blob)?;
        Ok(Subject {
            pod: self.pod_of(namespace, deployment_id).await?,
            deployment_id: deployment_id.to_owned(),
            environment_id: environment_id.to_owned(),
            blob,
            plaintext,
            foreign_blob,
        })
    }

    /// Lets the control plane want a workload with this blob.
    fn want(
        &self,
        namespace: &str,
        name: &str,
        deployment_id: &str,
        environment_id: &str,
        blob: &[u8],
    ) -> Result<(), String> {
        let input = DeploymentInput {
            k8s_namespace: namespace.to_owned(),
            k8s_name: name.to_owned(),
            workspace_id: "ws_1".to_owned(),
            project_id: "proj_1".to_owned(),
            environment_id: environment_id.to_owned(),
            deployment_id: deployment_id.to_owned(),
            image: "app:1".to_owned(),
            replicas: 1,
            cpu_millicores: 100,
            memory_mib: 64,
            encrypted_environment_variables: blob.to_vec(),
            ..DeploymentInput::default()
        };
        let desired = deployment::validate(input, &Rules::default());
        let desired = desired.map_err(|invalid| invalid.to_string())?;
        self.control.apply(Desired::Deployment(Box::new(desired)));
        Ok(())
    }

    pub(super) async fn pod_of(
        &self,
        namespace: &str,
        deployment_id: &str,
    ) -> Result<ObjectRef, String> {
        for _ in 0..PATIENCE {
            let pods = self.admin().list("Pod", Some(namespace));
            let is_it = |pod: &&Value| {
                pod["metadata"]["labels"][labels::DEPLOYMENT_ID] == deployment_id
                    && pod["status"]["phase"] == "Running"
            };
            if let Some(pod) = pods.iter().find(is_it) {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                return Ok(ObjectRef::new(Resource::Pod, namespace, name));
            }
            pass(Duration::from_millis(100)).await;
        }
        Err(format!("no pod of {deployment_id} runs"))
    }

    /// The token that a request of this class comes with; afterwards all is as the class says.
    pub(super) async fn token(&self, class: Class, subject: &Subject) -> Result<Secret, String> {
        *self.identities.class.lock() = Class::Valid;
        let tokens = self.cluster.tokens();
        let audiences = class.audiences(self.audience);
        let of = |pod: &ObjectRef| {
            let token = tokens.for_pod(&pod.namespace, &pod.name, &audiences);
            token.ok_or_else(|| format!("there is no pod {pod}"))
        };
        let (id, name) = (
            &*subject.deployment_id,
            format!("{class:?}-x").to_lowercase(),
        );
        let token = match class {
            Class::LegacySecret => tokens.for_account(NAMESPACE, "default"),
            Class::Node => tokens.for_user("system:node:node-1", &["system:nodes"]),
            Class::OtherNamespace => {
                let other = self.workload(ELSEWHERE, &name, "d_elsewhere", "env_1");
                of(&other.await?.pod)?
            }
            Class::OtherDeployment => {
                let other = self.workload(NAMESPACE, &name, "d_other", "env_1");
                of(&other.await?.pod)?
            }
            Class::OtherEnvironment => {
                let other = self.workload(ELSEWHERE, &name, id, "env_2");
                of(&other.await?.pod)?
            }
            Class::EarlierBlob => {
                let later = self.vault.inner.blob("env_1", &[("A", "later")]);
                self.want(NAMESPACE, &name_of(class), id, "env_1", &later)?;
                self.template_has(&name_of(class), &later).await?;
                of(&subject.pod)?
            }
            Class::ForgedReplicaSet | Class::InventedDeployment | Class::SchedulerMark => {
                of(&self.forge(class, subject).await?)?
            }
            Class::PatchedTemplate | Class::PatchedReplicaSet => {
                of(&self.change_template(class, subject, &subject.pod).await?)?
            }
            _ => of(&subject.pod)?,
        };
        // What the API server says now is what it said before the pod changed.
        let review = self.identities.client.review(&token, self.audience).await;
        *self.identities.recorded.lock() = review.ok();
        *self.identities.class.lock() = class;
        self.change(class, subject, &token).await?;
        Ok(match class {
            Class::BadSignature => Secret::new(format!("{}x", token.expose())),
            _ => token,
        })
    }

    async fn change(&self, class: Class, subject: &Subject, token: &Secret) -> Result<(), String> {
        let admin = self.admin();
        let pod = &subject.pod;
        let merge = |subresource: &str, patch: Value| {
            let patched = admin.patch(pod, "somebody", subresource, &Patch::Merge(patch));
            patched.map(drop).map_err(|status| status.message)
        };
        let relabel =
            |key: &str, value: Value| merge("", json!({"metadata": {"labels": {key: value}}}));
        match class {
            Class::Expired => self.cluster.tokens().expire(token),
            Class::PodDeleted => self.remove(pod).await?,
            Class::SameNameNewUid => {
                let mut again = admin.get(pod).ok_or("the pod is gone")?;
                self.remove(pod).await?;
                for field in [
                    "uid",
                    "resourceVersion",
                    "managedFields",
                    "creationTimestamp",
                ] {
                    again["metadata"][field].take();
                }
                let made = admin.create(again, "somebody");
                made.map_err(|status| status.message)?;
            }
            Class::PodDeleting => {
                merge(
                    "",
                    json!({"metadata": {"finalizers": ["example.com/stay"]}}),
                )?;
                let begun = admin.delete(pod, None);
                begun.map_err(|status| status.message)?;
            }
            Class::PodSucceeded => merge("status", json!({"status": {"phase": "Succeeded"}}))?,
            Class::PodLabelRemoved => relabel(labels::DEPLOYMENT_ID, Value::Null)?,
            Class::PodNotManaged => relabel(labels::MANAGED_BY, json!("somebody"))?,
            Class::OwnerMismatch => {
                let other = self.workload(NAMESPACE, "another-owner", "d_owner", "env_1");
                let other = admin.get(&other.await?.pod).ok_or("the pod is gone")?;
                let owners = other["metadata"]["ownerReferences"].clone();
                merge("", json!({"metadata": {"ownerReferences": owners}}))?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) async fn remove(&self, pod: &ObjectRef) -> Result<(), String> {
        let admin = self.admin();
        let removed = admin.delete(pod, Some(0));
        removed.map_err(|status| status.message)?;
        for _ in 0..PATIENCE {
            if admin.get(pod).is_none() {
                return Ok(());
            }
            pass(Duration::from_millis(100)).await;
        }
        Err(format!("{pod} does not go"))
    }
}

pub(super) async fn pass(time: Duration) {
    sleep(time).await;
}

/// The API server, with answers on tokens as no API server of a test can be made to give them.
struct Rewriting {
    client: SimClient,
    class: Mutex<Class>,
    recorded: Mutex<Option<Review>>,
}

#[async_trait]
impl Identities for Rewriting {
    async fn review(&self, token: &Secret, audience: Option<&str>) -> Result<Review, Refusal> {
        let class = *self.class.lock();
        let mut review = self.client.review(token, audience).await?;
        match class {
            Class::NotYetValid => {
                return Ok(Review {
                    error: "token is not valid yet".to_owned(),
                    ..Review::default()
                });
            }
            Class::WrongIssuer => return Ok(Review::default()),
            Class::AudiencesNotConfirmed => review.audiences.clear(),
            Class::UserCertificate => {
                "jane".clone_into(&mut review.username);
                review.extra.clear();
            }
            Class::Anonymous => {
                "system:anonymous".clone_into(&mut review.username);
                review.extra.clear();
            }
            Class::OtherAccount => {
                review.username = format!("system:serviceaccount:{NAMESPACE}:another");
            }
            Class::NodeMismatch => {
                review.extra.insert(
                    "authentication.kubernetes.io/node-name".to_owned(),
                    vec!["another-node".to_owned()],
                );
            }
            Class::TwoPods => {
                for (key, values) in &mut review.extra {
                    if key.ends_with("pod-name") {
                        values.push("another".to_owned());
                    }
                }
            }
            Class::RefusedWithUser => review.authenticated = Some(false),
            Class::ReviewFails => {
                return Err(Refusal {
                    class: RefusalClass::Transient,
                    code: 500,
                    message: "planned".to_owned(),
                    retry_after: None,
                });
            }
            // An API server that is behind: only a look at the pod itself can tell.
            Class::PodDeleted | Class::SameNameNewUid => {
                review = self.recorded.lock().clone().unwrap_or_default();
            }
            _ => {}
        }
        Ok(review)
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodIdentity>, Refusal> {
        self.client.pod(namespace, name).await
    }

    async fn replica_set(&self, namespace: &str, name: &str) -> Result<Option<Metadata>, Refusal> {
        self.client.replica_set(namespace, name).await
    }
}

/// The vault in one of its states.
pub(super) struct TestVault {
    inner: SimVault,
    state: Mutex<Backend>,
}

impl TestVault {
    pub(super) fn set(&self, state: Backend) {
        *self.state.lock() = state;
    }

    pub(super) fn calls(&self) -> u64 {
        self.inner.calls()
    }
}

#[async_trait]
impl Vault for TestVault {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        let state = *self.state.lock();
        if state == Backend::Slow {
            pass(SLOW).await;
        }
        let mut opened = self.inner.decrypt(key_ring, items).await?;
        match state {
            Backend::Failing => Err(unavailable()),
            Backend::Partial => {
                opened.pop_first();
                Ok(opened)
            }
            Backend::Well | Backend::Slow => Ok(opened),
        }
    }
}
