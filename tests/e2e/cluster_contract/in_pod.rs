//! The pod's own account, over TLS.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{CallLimits, KubeAccess, KubeCluster, KubeConnection};
use krane_ports::Cluster;
use krane_testcluster::KRANE;

use super::{Running, patient, running};

async fn account(running: &Running, ca: &Path, folder: &Path) -> KubeCluster {
    let token = running
        .cluster
        .service_account_token(KRANE, KRANE)
        .await
        .unwrap();
    fs::write(folder.join("token"), token).unwrap();
    fs::write(folder.join("namespace"), KRANE).unwrap();
    fs::copy(ca, folder.join("ca.crt")).unwrap();
    let server = running.cluster.api_url().parse().unwrap();
    let access = KubeAccess::InCluster {
        server,
        account: folder.to_owned(),
    };
    let agent = HeaderValue::from_static("krane/contract");
    let connection = KubeConnection::open(access, agent, Arc::new(()))
        .await
        .unwrap();
    assert_eq!(connection.namespace(), KRANE);
    KubeCluster::new(Arc::new(connection), CallLimits::default(), patient())
}

fn own_namespace() -> ObjectRef {
    ObjectRef::new(Resource::Namespace, "", KRANE)
}

/// aws/network-flow-monitor-agent PR #43, rustls/rustls#2070 (B48): the only crypto provider is found without a call.
#[tokio::test]
async fn the_pods_own_account_is_enough() {
    let running = running().await;
    let folder = tempfile::tempdir().unwrap();
    let ca = running.cluster.folder().join("ca.crt");
    let cluster = account(running, &ca, folder.path()).await;
    assert!(cluster.metadata(&own_namespace()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cluster_edge/ca.crt");
    let cluster = account(running().await, &other, folder.path()).await;
    let refusal = cluster.metadata(&own_namespace()).await.unwrap_err();
    assert_eq!((refusal.class, refusal.code), (RefusalClass::Transient, 0));
    assert!(refusal.message.contains("certificate"), "{refusal}");
}
