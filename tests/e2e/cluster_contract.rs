//! The Kubernetes adapter on a real API server, with no more rights than the chart gives it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod admin;
mod disruptions;
mod goldens;
mod in_pod;
mod leases;
mod refusals;
mod twins;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use krane_kubernetes::{CallLimits, CallTimeouts, KubeAccess, KubeCluster, KubeConnection};
use krane_testcluster::{Cluster, Options};
use tokio::sync::OnceCell;

use admin::KubeAdmin;
use krane_testcontract::{Admin, PATIENCE, World, cluster_contract};

/// A cluster of this module's own: it fills up with objects that carry krane's label.
static CLUSTER: OnceCell<Running> = OnceCell::const_new();

struct Running {
    cluster: Cluster,
    /// Of krane's ServiceAccount.
    kubeconfig: PathBuf,
}

const OPTIONS: Options = Options {
    nodes: 0,
    audit: false,
    kwok: false,
    controllers: true,
    cilium: true,
};

async fn start(options: Options) -> Running {
    let cluster = Cluster::start(options).await.unwrap();
    let rbac = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/krane/files/rbac.yaml");
    cluster.install(&rbac).await.unwrap();
    let kubeconfig = cluster.service_account_kubeconfig().await.unwrap();
    Running {
        cluster,
        kubeconfig,
    }
}

async fn running() -> &'static Running {
    CLUSTER.get_or_init(|| start(OPTIONS)).await
}

async fn connect(kubeconfig: &Path) -> Arc<KubeConnection> {
    let access = KubeAccess::Kubeconfig {
        files: vec![kubeconfig.to_owned()],
        context: None,
    };
    let agent = HeaderValue::from_static("krane/contract");
    Arc::new(
        KubeConnection::open(access, agent, Arc::new(()))
            .await
            .unwrap(),
    )
}

/// What a busy machine needs; the adapter's own timeouts are tested elsewhere.
fn patient() -> CallTimeouts {
    CallTimeouts::fixed(PATIENCE)
}

async fn world_in(running: &Running, check: &str) -> World {
    let namespace = check.replace('_', "-");
    let namespace = namespace[..namespace.len().min(50)]
        .trim_end_matches('-')
        .to_owned();
    let admin = Arc::new(KubeAdmin(running.cluster.admin_client().await.unwrap()));
    admin.create_namespace(&namespace).await;
    let connection = connect(&running.kubeconfig).await;
    let cluster = |timeouts| {
        let connection = Arc::clone(&connection);
        Arc::new(KubeCluster::new(
            connection,
            CallLimits::default(),
            timeouts,
        ))
    };
    let watch = Duration::from_secs(5);
    World {
        cluster: cluster(patient()),
        hasty: cluster(CallTimeouts { watch, ..patient() }),
        admin,
        namespace,
        keeper: Box::new(()),
    }
}

async fn world(check: &str) -> World {
    world_in(running().await, check).await
}

cluster_contract! { #[tokio::test] world }
