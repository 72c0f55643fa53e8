//! A cluster, a control plane and the agent to run between them.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{ControlPlane, samples};
use krane_testcluster::{AuditEntry, AuditMark, Cluster, KRANE_USER, Options};

use crate::{
    AgentBuilder, Api, Live, Outcome, Quiet, eventually,
    machine::Permit,
    settled::{self, Pods},
    sweep::{namespaces_are_gone, sweep},
};

/// Part of every secret that the harness gives to krane; a log that shows it fails the test.
pub const CANARY: &str = "canary-5f1c0d";

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// Everything around an agent.
pub struct World {
    /// The control plane.
    pub control: ControlPlane,
    /// The cluster with all rights.
    pub api: Api,
    cluster: Whose,
    kubeconfig: PathBuf,
    binary: PathBuf,
    number: u32,
    _permit: Permit,
}

enum Whose {
    Shared(&'static Cluster),
    Own(Box<Cluster>),
}

impl World {
    /// On a cluster that tests of this process use in turn, alone on it for as long as this world lives.
    pub async fn shared(binary: impl AsRef<Path>) -> Outcome<Self> {
        Self::on_shared(binary.as_ref(), Quiet::Beside).await
    }

    /// [`shared`](Self::shared), with no other world running: for tests that compare times.
    pub async fn quiet(binary: impl AsRef<Path>) -> Outcome<Self> {
        Self::on_shared(binary.as_ref(), Quiet::Alone).await
    }

    /// On a cluster of its own, which the test may hurt.
    pub async fn own(binary: impl AsRef<Path>, options: Options, quiet: Quiet) -> Outcome<Self> {
        let permit = Permit::without_cluster(quiet).await;
        let cluster = Cluster::start(options).await?;
        let kubeconfig = krane_kubeconfig(&cluster).await?;
        Self::new(
            binary.as_ref(),
            Whose::Own(Box::new(cluster)),
            kubeconfig,
            permit,
        )
        .await
    }

    /// On a cluster of its own in which nothing of krane is installed.
    pub async fn bare(binary: impl AsRef<Path>, options: Options) -> Outcome<Self> {
        let permit = Permit::without_cluster(Quiet::Beside).await;
        let cluster = Cluster::start(options).await?;
        let kubeconfig = cluster.service_account_kubeconfig().await?;
        let whose = Whose::Own(Box::new(cluster));
        Self::new(binary.as_ref(), whose, kubeconfig, permit).await
    }

    async fn on_shared(binary: &Path, quiet: Quiet) -> Outcome<Self> {
        let (permit, shared) = Permit::with_cluster(quiet, krane_kubeconfig).await?;
        let whose = Whose::Shared(&shared.cluster);
        let world = Self::new(binary, whose, shared.kubeconfig.clone(), permit).await?;
        sweep(&world.api).await?;
        Ok(world)
    }

    async fn new(
        binary: &Path,
        cluster: Whose,
        kubeconfig: PathBuf,
        permit: Permit,
    ) -> Outcome<Self> {
        let client = cluster.get().admin_client().await?;
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            control: ControlPlane::start(&format!("{CANARY}-{number}")).await?,
            api: Api::new(client),
            cluster,
            kubeconfig,
            binary: binary.to_owned(),
            number,
            _permit: permit,
        })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        self.cluster.get()
    }

    /// The kubeconfig of krane's ServiceAccount.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The agent of this world.
    pub fn agent(&self) -> AgentBuilder {
        AgentBuilder {
            binary: self.binary.clone(),
            kubeconfig: self.kubeconfig.clone(),
            pod: None,
            control_url: self.control.url(),
            token: self.control.token().to_owned(),
            process_group: self.cluster().process_group(),
            settings: Vec::new(),
            variables: Vec::new(),
            secrets: vec![CANARY.to_owned()],
            api: self.api.clone(),
        }
    }

    /// A namespace of this world alone.
    pub fn namespace(&self, index: usize) -> String {
        format!("w{}n{index}", self.number)
    }

    /// `count` sample deployments, spread evenly over `namespaces`, with a planted secret in each.
    pub fn deployments(&self, count: usize, namespaces: usize) -> Vec<ApplyDeployment> {
        let sample = |index: usize| {
            let namespace = self.namespace(index % namespaces);
            let blob = format!("{{\"secrets\":{{\"KEY\":\"{CANARY}\"}}}}");
            ApplyDeployment {
                encrypted_environment_variables: blob.into_bytes().into(),
                ..samples::deployment(&namespace, &format!("d{}x{index}", self.number))
            }
        };
        (0..count).map(sample).collect()
    }

    /// Wants all of them, at once.
    pub fn push_all(&self, deployments: &[ApplyDeployment]) -> Vec<u64> {
        self.control
            .push_all(deployments.iter().cloned().map(samples::apply))
    }

    /// What krane made that is there now.
    pub async fn live(&self) -> Outcome<Live> {
        Live::read(&self.api).await
    }

    /// Whether cluster and reports equal what is desired, and all pods run.
    pub async fn check_settled(
        &self,
        desired: &[ApplyDeployment],
        gone: &[ApplyDeployment],
    ) -> Result<(), String> {
        self.check(desired, gone, Pods::Running).await
    }

    async fn check(
        &self,
        desired: &[ApplyDeployment],
        gone: &[ApplyDeployment],
        pods: Pods,
    ) -> Result<(), String> {
        let live = self.live().await.map_err(|failure| failure.to_string())?;
        self.control
            .look(|seen| settled::check(desired, gone, pods, &live, &seen.reports))
    }

    /// Waits until cluster and reports equal what is desired, and all pods run.
    pub async fn settles(
        &self,
        what: &str,
        desired: &[ApplyDeployment],
        gone: &[ApplyDeployment],
        limit: Duration,
    ) -> Outcome {
        eventually(what, limit, async || {
            self.check(desired, gone, Pods::Running).await
        })
        .await
    }

    /// Waits until the cluster equals what is desired, and reports say what pods really do.
    pub async fn is_told_truly(
        &self,
        what: &str,
        desired: &[ApplyDeployment],
        gone: &[ApplyDeployment],
        limit: Duration,
    ) -> Outcome {
        eventually(what, limit, async || {
            self.check(desired, gone, Pods::Whatever).await
        })
        .await
    }

    /// Deletes everything that krane made, and waits until it is gone, namespaces included.
    pub async fn sweep(&self) -> Outcome {
        sweep(&self.api).await?;
        namespaces_are_gone(&self.api).await
    }

    /// A place in the audit log.
    pub fn mark(&self) -> Outcome<AuditMark> {
        Ok(self.cluster().audit_mark()?)
    }

    /// krane's writes since a mark, refused ones included; Events are no part of what is wanted.
    pub fn writes(&self, since: AuditMark) -> Outcome<Vec<AuditEntry>> {
        let mut writes = self.cluster().writes_by(KRANE_USER, since)?;
        writes.retain(|entry| entry.resource != "events");
        Ok(writes)
    }

    /// krane's requests since a mark, reads included.
    pub fn requests(&self, since: AuditMark) -> Outcome<Vec<AuditEntry>> {
        Ok(self.cluster().requests_by(KRANE_USER, since)?)
    }
}

impl Whose {
    fn get(&self) -> &Cluster {
        match self {
            Self::Shared(cluster) => cluster,
            Self::Own(cluster) => cluster,
        }
    }
}

/// krane's token, with the rules that krane needs for what the tests switch on and no others, and with the policy that
/// keeps it away from the objects of others.
async fn krane_kubeconfig(cluster: &Cluster) -> Outcome<PathBuf> {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/krane/files");
    cluster
        .install(&files.join("admission-policy.yaml"))
        .await?;
    let rules = files.join("rbac.yaml");
    let is_needed = |document: &serde_json::Value| {
        let switch = &document["metadata"]["labels"]["krane.unkey.com/rbac-switch"];
        ["core", "registry", "lease", "vault"]
            .iter()
            .any(|each| switch == *each)
    };
    cluster.install_if(&rules, is_needed).await?;
    Ok(cluster.service_account_kubeconfig().await?)
}
