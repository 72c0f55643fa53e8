//! The chart as an operator installs it: rendered by helm, applied, and krane started as its container says.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Container, Namespace, Pod, Secret, Volume},
};
use kube::{
    ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Agent, CANARY, Failure, KEEP_VARIABLE, Outcome, World, agent::InPod, eventually,
    free_ports::free_ports, limits,
};

/// Release, namespace and, by the chart's rules, the name of everything.
const KRANE: &str = "krane";
/// Where a kubelet mounts what a pod needs to find the API server.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The chart with values for a world, to be installed there.
pub struct Chart<'a> {
    world: &'a World,
    ports: [u16; 3],
    /// Values and rendered manifests.
    folder: TempDir,
}

impl<'a> Chart<'a> {
    /// The values that every installation sets, the control plane of the world, free ports, and above them `values`.
    pub fn new(world: &'a World, values: &Value) -> Outcome<Self> {
        let [rpc, metrics, admin, health] = free_ports()?;
        let ports = [rpc, metrics, admin];
        let own = json!({
            "image": {"repository": "registry.example/krane"},
            "config": {
                "region": krane_sim::control_plane::REGION,
                "platform": krane_sim::control_plane::PLATFORM,
            },
            "controlPlane": {"url": world.control.url(), "existingSecret": "krane-control"},
            "registry": {
                "url": "registry.example", "username": "puller", "existingSecret": "krane-registry",
            },
            "ports": {"rpc": rpc, "metrics": metrics, "health": health},
            "admin": {"listen": format!("127.0.0.1:{admin}")},
            // The nodes of the test cluster are all tainted.
            "tolerations": [{"operator": "Exists"}],
        });
        let folder = TempDir::with_prefix("krane-chart-")?;
        fs::write(folder.path().join("own.yaml"), own.to_string())?;
        fs::write(folder.path().join("values.yaml"), values.to_string())?;
        Ok(Self {
            world,
            ports,
            folder,
        })
    }

    /// Makes what an operator makes first, applies the manifests and waits until their rights are in force. krane's
    /// namespace takes no pods but restricted ones.
    pub async fn install(&self) -> Outcome {
        let restricted =
            json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        let namespaces = self.world.api.all::<Namespace>();
        namespaces
            .patch(KRANE, &PatchParams::default(), &Patch::Merge(restricted))
            .await?;
        self.secret("krane-control", "token", self.world.control.token())
            .await?;
        self.secret("krane-registry", "password", &format!("{CANARY}-registry"))
            .await?;
        let manifests = self.render(&["--no-hooks"])?;
        Ok(self.world.cluster().install(&manifests).await?)
    }

    /// Waits until the Deployment is available, and returns its pod.
    pub async fn pod(&self) -> Outcome<Pod> {
        let deployments = self.world.api.within::<Deployment>(KRANE);
        eventually(
            "krane's Deployment is available",
            limits::LONG,
            async || {
                let found = deployments.get(KRANE).await;
                let status = found.map_err(|error| error.to_string())?.status;
                let status = status.unwrap_or_default();
                if status.available_replicas.unwrap_or_default() > 0 {
                    Ok(())
                } else {
                    Err(format!("{:?}", status.conditions))
                }
            },
        )
        .await?;
        let pods = self.world.api.within::<Pod>(KRANE);
        let ours = ListParams::default().labels("app.kubernetes.io/name=krane");
        let pod = pods.list(&ours).await?.into_iter().next();
        pod.ok_or_else(|| Failure::new("the Deployment has no pod"))
    }

    /// Makes the pod of `helm test`, and returns it as the API server took it.
    pub async fn test_pod(&self) -> Outcome<Pod> {
        let path = self.render(&["--show-only", "templates/tests/check.yaml"])?;
        self.world.cluster().install(&path).await?;
        let name = format!("{KRANE}-check");
        Ok(self.world.api.within::<Pod>(KRANE).get(&name).await?)
    }

    /// Starts krane as the pod's container says: its arguments and variables, the files of its volumes in a folder of
    /// their own, and of its ServiceAccount what a kubelet mounts, bound to this pod, where krane looks for it.
    pub async fn start(&self, pod: &Pod) -> Outcome<Agent> {
        let mut folder = TempDir::with_prefix("krane-agent-")?;
        folder.disable_cleanup(std::env::var_os(KEEP_VARIABLE).is_some());
        let spec = pod.spec.clone().unwrap_or_default();
        let container = spec.containers.first().cloned().unwrap_or_default();
        let volumes = spec.volumes.unwrap_or_default();
        let here = |text: &str| moved(text, &container, folder.path());
        for mount in container.volume_mounts.iter().flatten() {
            if mount.mount_path == ACCOUNT {
                continue;
            }
            let volume = volumes.iter().find(|volume| volume.name == mount.name);
            let volume = volume.ok_or_else(|| Failure::new(format!("no volume {}", mount.name)))?;
            let target = PathBuf::from(here(&mount.mount_path));
            fs::create_dir_all(&target)?;
            for (name, text) in self.files(volume).await? {
                fs::write(target.join(name), here(&text))?;
            }
        }
        let arguments: Vec<_> = container.args.iter().flatten().collect();
        let arguments: Vec<_> = arguments.iter().map(|text| here(text).into()).collect();
        let (cluster, name) = (self.world.cluster(), pod.name_any());
        let mut agent = if InPod::works() {
            let account = folder.path().join("serviceaccount");
            fs::create_dir(&account)?;
            cluster.mount_account(KRANE, &name, &account).await?;
            let port = cluster.api_port();
            self.world.agent().in_pod(InPod { account, port })
        } else {
            // To the stream itself: the harness of tests keeps what a test prints that passes.
            let _ = writeln!(
                std::io::stderr(),
                "not proved: no user namespaces here, krane gets a kubeconfig in the place of a pod's files"
            );
            let kubeconfig = cluster.pod_kubeconfig(KRANE, &name).await?;
            self.world.agent().kubeconfig(&kubeconfig)
        };
        for variable in container.env.iter().flatten() {
            agent = agent.variable(
                &variable.name,
                variable.value.as_deref().unwrap_or_default(),
            );
        }
        let mut agent = agent.spawn_in(folder, arguments, self.ports)?;
        agent.ready(limits::LONG).await?;
        Ok(agent)
    }

    /// The manifests as a file.
    fn render(&self, flags: &[&str]) -> Outcome<PathBuf> {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/krane");
        let rendered = Command::new("helm")
            .args(["template", KRANE])
            .arg(chart)
            .args(["--namespace", KRANE])
            .arg("--values")
            .arg(self.folder.path().join("own.yaml"))
            .arg("--values")
            .arg(self.folder.path().join("values.yaml"))
            .args(flags)
            .output()
            .map_err(|error| {
                Failure::new(format!(
                    "helm: {error}; scripts/e2e has it, `scripts/tools helm` gets it"
                ))
            })?;
        if !rendered.status.success() {
            let words = String::from_utf8_lossy(&rendered.stderr).into_owned();
            return Err(Failure::new(words));
        }
        let path = self.folder.path().join("manifests.yaml");
        fs::write(&path, rendered.stdout)?;
        Ok(path)
    }

    async fn secret(&self, name: &str, key: &str, value: &str) -> Outcome {
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": name}, "stringData": {key: value},
        }))?;
        let secrets = self.world.api.within::<Secret>(KRANE);
        secrets.create(&PostParams::default(), &secret).await?;
        Ok(())
    }

    /// Name and text of what a kubelet would put into this volume.
    async fn files(&self, volume: &Volume) -> Outcome<Vec<(String, String)>> {
        let mut files = Vec::new();
        if let Some(source) = &volume.config_map {
            let maps = self.world.api.within::<ConfigMap>(KRANE);
            files.extend(maps.get(&source.name).await?.data.unwrap_or_default());
        }
        let projected = volume.projected.clone().unwrap_or_default();
        for source in projected.sources.into_iter().flatten() {
            let Some(source) = source.secret else {
                continue;
            };
            let secrets = self.world.api.within::<Secret>(KRANE);
            let data = secrets.get(&source.name).await?.data.unwrap_or_default();
            for item in source.items.into_iter().flatten() {
                let value = data.get(&item.key).ok_or_else(|| {
                    Failure::new(format!("Secret {} has no {}", source.name, item.key))
                })?;
                files.push((item.path, String::from_utf8(value.0.clone())?));
            }
        }
        Ok(files)
    }
}

/// The text with every path of the container below `folder`.
fn moved(text: &str, container: &Container, folder: &Path) -> String {
    let mounts = container.volume_mounts.iter().flatten();
    mounts.fold(text.to_owned(), |text, mount| {
        let path = &mount.mount_path;
        text.replace(path, &format!("{}{path}", folder.display()))
    })
}
