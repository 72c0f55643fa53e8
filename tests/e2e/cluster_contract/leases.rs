//! The Lease as its adapter reads and writes it, with the rights of the chart.

use krane_kubernetes::KubeLeases;
use krane_testcontract::leases;

use super::{connect, running};

#[tokio::test]
async fn a_lease_is_made_once_and_changed_only_in_the_version_that_was_seen() {
    let real = KubeLeases::new(connect(&running().await.kubeconfig).await);
    leases::a_lease_is_made_once_and_changed_only_in_the_version_that_was_seen(&real).await;
}
