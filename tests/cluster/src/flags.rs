//! The command lines of the programs.

use std::path::{Path, PathBuf};

use crate::{
    Component, Options,
    credentials::Credentials,
    folder::{kubeconfig_name, log},
    ports::Ports,
    process::Program,
};

const AUDIT_LOG: &str = "audit.log";

/// What the command lines depend on.
#[derive(Debug, Clone)]
pub(crate) struct Settings<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) ports: Ports,
    pub(crate) credentials: &'a Credentials,
    pub(crate) options: &'a Options,
}

impl Settings<'_> {
    /// How to start a component.
    pub(crate) fn program(&self, component: Component, file: &Path) -> Program {
        let arguments = match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.api_server(),
            Component::ControllerManager => self.controller_manager(),
            Component::Scheduler => self.scheduler(),
            Component::Kwok => self.kwok(),
            // What it does is said with each call.
            Component::EtcdUtl => Vec::new(),
        };
        Program {
            component,
            file: file.to_owned(),
            arguments,
            log: log(self.folder, component),
        }
    }

    /// Durability is worth nothing here and costs most of the start.
    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd_client);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            "--name=testcluster".to_owned(),
            path("--data-dir", &etcd_data(self.folder)),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=testcluster={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--quota-backend-bytes=4294967296".to_owned(),
            "--snapshot-count=10000".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let credentials = self.credentials;
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd_client),
            format!("--secure-port={}", self.ports.api_server),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            path("--cert-dir", &self.folder.join("apiserver")),
            path("--tls-cert-file", &credentials.server_certificate),
            path("--tls-private-key-file", &credentials.server_key),
            path("--token-auth-file", &credentials.tokens_file),
            path(
                "--service-account-key-file",
                &credentials.service_account_public_key,
            ),
            path(
                "--service-account-signing-key-file",
                &credentials.service_account_key,
            ),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.250.0.0/16".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if self.options.audit {
            arguments.extend([
                path(
                    "--audit-policy-file",
                    &self.folder.join("audit-policy.yaml"),
                ),
                path("--audit-log-path", &audit_log(self.folder)),
                // Never rotated: tests count lines.
                "--audit-log-maxsize=1000000".to_owned(),
            ]);
        }
        arguments
    }

    /// Controllers that need what a test machine does not have (clouds, certificates, disks) are off.
    fn controller_manager(&self) -> Vec<String> {
        vec![
            self.kubeconfig(Component::ControllerManager),
            path("--service-account-private-key-file", &self.credentials.service_account_key),
            path("--root-ca-file", &self.credentials.authority_file),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=200".to_owned(),
            "--kube-api-burst=400".to_owned(),
            "--controllers=*,-certificatesigningrequest-signing-controller,\
             -certificatesigningrequest-approving-controller,-certificatesigningrequest-cleaner-controller,\
             -cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller,\
             -persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,\
             -persistentvolume-expander-controller"
                .to_owned(),
        ]
    }

    fn scheduler(&self) -> Vec<String> {
        vec![
            self.kubeconfig(Component::Scheduler),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=400".to_owned(),
            "--kube-api-burst=800".to_owned(),
        ]
    }

    fn kwok(&self) -> Vec<String> {
        vec![
            self.kubeconfig(Component::Kwok),
            path("--config", &self.folder.join("kwok.yaml")),
            "--manage-all-nodes=true".to_owned(),
            "--node-ip=127.0.0.1".to_owned(),
            "--node-lease-duration-seconds=120".to_owned(),
            "--v=WARN".to_owned(),
        ]
    }

    fn kubeconfig(&self, component: Component) -> String {
        let name = component.user().unwrap_or_default();
        path("--kubeconfig", &self.folder.join(kubeconfig_name(name)))
    }
}

/// Where etcd keeps its data.
pub(crate) fn etcd_data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}

/// Where the API server writes its audit log.
pub(crate) fn audit_log(folder: &Path) -> PathBuf {
    folder.join(AUDIT_LOG)
}

fn path(flag: &str, value: &Path) -> String {
    format!("{flag}={}", value.display())
}
