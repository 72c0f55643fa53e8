//! The cluster itself: its start, its parts and its end.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::{
    ADMIN_USER, Binaries, Component, Error, Options, behaviour,
    credentials::Credentials,
    flags::{self, Settings},
    folder,
    guard::Guard,
    objects,
    ports::Ports,
    process::Process,
};

/// How often a start is repeated when another program took a port in between.
const ATTEMPTS: usize = 4;
/// Generous: a machine that also compiles is slow.
const START_LIMIT: Duration = Duration::from_secs(90);

static SHARED: OnceCell<Cluster> = OnceCell::const_new();

/// A running control plane. Dropping it ends every program and removes its folder; so does the end of this process,
/// in whatever way it ends.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    ports: Ports,
    options: Options,
    credentials: Credentials,
    binaries: Binaries,
    admin_kubeconfig: PathBuf,
    processes: Mutex<BTreeMap<Component, Process>>,
    guard: Guard,
}

impl Cluster {
    /// Builds what is missing (the first time takes minutes), then starts a fresh cluster (seconds) and returns when
    /// it is ready: objects in place, nodes Ready, default ServiceAccounts made.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let binaries = spawn_blocking(Binaries::ensure)
            .await
            .map_err(Error::Interrupted)??;
        let mut attempt = 1;
        loop {
            match Self::start_once(&options, &binaries).await {
                Err(error) if error.is_port_collision() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn start_once(options: &Options, binaries: &Binaries) -> Result<Self, Error> {
        let cluster = Self::prepare(options, binaries)?;
        cluster.launch(Component::Etcd)?;
        cluster
            .wait_for_port(Component::Etcd, cluster.ports.etcd_client, START_LIMIT)
            .await?;
        cluster.launch(Component::ApiServer)?;
        cluster.wait_for_api_server().await?;
        let client = cluster.admin_client().await?;
        objects::create(&client, options, binaries.cilium_crd()).await?;
        for component in [
            Component::ControllerManager,
            Component::Scheduler,
            Component::Kwok,
        ] {
            if cluster.has(component) {
                cluster.launch(component)?;
            }
        }
        cluster.wait_for_controllers(&client).await?;
        Ok(cluster)
    }

    /// Everything that is only files.
    fn prepare(options: &Options, binaries: &Binaries) -> Result<Self, Error> {
        let folder = folder::create()?;
        let keep = std::env::var_os(folder::KEEP_VARIABLE).is_some();
        // From here on the guard removes the folder.
        let guard = Guard::start((!keep).then_some(folder.as_path())).map_err(Error::Guard)?;
        let ports = Ports::choose().map_err(Error::Ports)?;
        let credentials = Credentials::create(&folder)?;
        folder::write(&folder, "kwok.yaml", &behaviour::kwok_configuration())?;
        folder::write(
            &folder,
            "audit-policy.yaml",
            include_str!("../assets/audit-policy.yaml"),
        )?;
        let api_server = api_url(ports);
        for (user, token) in &credentials.tokens {
            let text = credentials.kubeconfig(&api_server, user, token);
            folder::write(&folder, &folder::kubeconfig_name(user), &text)?;
        }
        let settings = Settings {
            folder: &folder,
            ports,
            credentials: &credentials,
            options,
        };
        let processes = Component::ALL
            .into_iter()
            .map(|component| {
                let program = settings.program(component, binaries.program(component));
                (component, Process::new(program))
            })
            .collect();
        Ok(Self {
            admin_kubeconfig: folder.join(folder::kubeconfig_name(ADMIN_USER)),
            folder,
            ports,
            options: options.clone(),
            credentials,
            binaries: binaries.clone(),
            processes: Mutex::new(processes),
            guard,
        })
    }

    /// One cluster for all tests of this process, with the default options, started by whoever asks first.
    /// It ends with the process.
    pub async fn shared() -> Result<&'static Self, Error> {
        SHARED
            .get_or_try_init(|| Self::start(Options::default()))
            .await
    }

    /// The URL of the API server; the same across its restarts.
    pub fn api_url(&self) -> String {
        api_url(self.ports)
    }

    /// The port of the API server at 127.0.0.1.
    pub fn api_port(&self) -> u16 {
        self.ports.api_server
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// The folder with keys, kubeconfigs and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the cluster was started with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The log of a component.
    pub fn log_path(&self, component: Component) -> PathBuf {
        folder::log(&self.folder, component)
    }

    /// The process group of the cluster's programs. A process started with
    /// [`process_group`](std::os::unix::process::CommandExt::process_group) of it ends together with the cluster.
    pub fn process_group(&self) -> i32 {
        self.guard.group()
    }

    /// A new client with all rights. Make one per test: a client belongs to the runtime that made it.
    pub async fn admin_client(&self) -> Result<Client, Error> {
        client_of(&self.admin_kubeconfig).await
    }

    /// Ends everything and removes the folder, as dropping does.
    pub fn stop(self) {
        drop(self);
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub(crate) fn program(&self, component: Component) -> &Path {
        self.binaries.program(component)
    }

    pub(crate) fn ports(&self) -> Ports {
        self.ports
    }

    pub(crate) fn cilium_crd(&self) -> &Path {
        self.binaries.cilium_crd()
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        flags::audit_log(&self.folder)
    }

    /// Whether the options include a component.
    pub fn has(&self, component: Component) -> bool {
        match component {
            Component::Etcd | Component::ApiServer => true,
            Component::ControllerManager | Component::Scheduler => self.options.controllers,
            Component::Kwok => self.options.kwok,
            Component::EtcdUtl => false,
        }
    }

    pub(crate) fn launch(&self, component: Component) -> Result<(), Error> {
        let group = self.guard.group();
        self.with(component, |process| process.start(group))?
    }

    /// Uses a process under the lock.
    pub(crate) fn with<T>(
        &self,
        component: Component,
        use_it: impl FnOnce(&mut Process) -> T,
    ) -> Result<T, Error> {
        if !self.has(component) {
            return Err(Error::WrongState {
                component,
                state: "not part of this cluster",
            });
        }
        self.processes()
            .get_mut(&component)
            .map(use_it)
            .ok_or(Error::WrongState {
                component,
                state: "not part of this cluster",
            })
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<Component, Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Until `/readyz` says ok. The port comes first: kube logs an error for each refused connection.
    pub(crate) async fn wait_for_api_server(&self) -> Result<(), Error> {
        let component = Component::ApiServer;
        self.wait_for_port(component, self.ports.api_server, START_LIMIT)
            .await?;
        let client = self.admin_client().await?;
        self.wait_for("/readyz", component, START_LIMIT, async || {
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(|error| error.to_string())?;
            client
                .request_text(request)
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await
    }

    pub(crate) async fn wait_for_etcd(&self) -> Result<(), Error> {
        self.wait_for_port(Component::Etcd, self.ports.etcd_client, START_LIMIT)
            .await
    }

    async fn wait_for_controllers(&self, client: &Client) -> Result<(), Error> {
        if self.options.kwok && self.options.nodes > 0 {
            let nodes: Api<Node> = Api::all(client.clone());
            let controllers = self.options.controllers;
            self.wait_for(
                "all nodes Ready",
                Component::Kwok,
                START_LIMIT,
                async || {
                    let nodes = nodes
                        .list(&ListParams::default())
                        .await
                        .map_err(|error| error.to_string())?;
                    match nodes.iter().find(|node| !usable(node, controllers)) {
                        Some(node) => Err(format!("{:?} is not", node.metadata.name)),
                        None => Ok(()),
                    }
                },
            )
            .await?;
        }
        if self.options.controllers {
            for namespace in ["default", "sentinel", objects::KRANE] {
                let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
                let what = format!("ServiceAccount {namespace}/default");
                self.wait_for(
                    &what,
                    Component::ControllerManager,
                    START_LIMIT,
                    async || {
                        accounts
                            .get("default")
                            .await
                            .map(drop)
                            .map_err(|error| error.to_string())
                    },
                )
                .await?;
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.guard.kill_all();
        for process in self.processes().values_mut() {
            // Killed already; this reaps.
            let _ = process.kill();
        }
        // The guard goes last: it removes the folder.
    }
}

/// Ready, and without the taints that the node controller removes.
fn usable(node: &Node, controllers: bool) -> bool {
    let ready = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let tainted = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .any(|taint| taint.key.starts_with("node.kubernetes.io/"));
    ready && !(controllers && tainted)
}

fn api_url(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api_server)
}

/// A client out of a kubeconfig file.
pub async fn client_of(kubeconfig: &Path) -> Result<Client, Error> {
    let failed = |source| Error::Kubeconfig {
        path: kubeconfig.to_owned(),
        source,
    };
    let file = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(failed)?;
    Client::try_from(config).map_err(Error::Client)
}
