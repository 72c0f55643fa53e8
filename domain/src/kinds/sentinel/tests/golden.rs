//! The manifests as they are sent. A change of the Deployment's pod template restarts every
//! sentinel: put the template before it among the earlier forms, and raise the renderer number.

use super::bodies;
use crate::testing::sentinel_input;

#[test]
fn all_five() {
    let all = bodies(sentinel_input());
    for (name, body) in [
        "deployment",
        "service",
        "disruption_budget",
        "gossip_service",
        "gossip_policy",
    ]
    .into_iter()
    .zip(all)
    {
        insta::assert_json_snapshot!(name, body);
    }
}
