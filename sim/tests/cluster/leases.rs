//! The Lease in memory does what the real one does.

use krane_sim::cluster::SimLeases;
use krane_testcontract::leases;

#[tokio::test]
async fn a_lease_is_made_once_and_changed_only_in_the_version_that_was_seen() {
    let memory = SimLeases::default();
    leases::a_lease_is_made_once_and_changed_only_in_the_version_that_was_seen(&memory).await;
}
