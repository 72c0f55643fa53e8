//! What a Deployment says of its pods.

use serde_json::{Value, json};

use super::{MANAGER, bare_template, sets_of};
use crate::cluster::store::Key;
use crate::cluster::world::World;

/// Writes the status of a Deployment as its ReplicaSets are now.
pub(super) fn tell(world: &mut World, key: &Key) {
    let Some(live) = world.store.get(key).cloned() else {
        return;
    };
    let sets = sets_of(world, key, live.uid());
    let template = bare_template(live.value());
    let sum = |field: &str| -> u64 { sets.iter().map(|set| set.count(field)).sum() };
    let updated = sets
        .iter()
        .find(|set| bare_template(set.live.value()) == template)
        .map(|set| set.count("replicas"));
    let available = sum("availableReplicas");
    let all: u64 = sets.iter().map(super::Set::wanted).sum();
    let mut status = json!({"observedGeneration": live.metadata("generation")});
    for (field, count) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", updated.unwrap_or_default()),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", all.saturating_sub(available)),
    ] {
        if count > 0 {
            status[field] = json!(count);
        }
    }
    let spec = &live.value()["spec"];
    let wanted = spec["replicas"].as_u64().unwrap_or(1);
    let (_, unavailable) = super::room(spec, wanted);
    let is_available = available >= wanted.saturating_sub(unavailable);
    let now = world.clock.timestamp();
    status["conditions"] = conditions(&live.value()["status"], is_available, &now);
    world.write_status(key, MANAGER, status);
}

/// Whether there are enough pods; its time is that of its last change.
fn conditions(before: &Value, is_available: bool, now: &str) -> Value {
    let (word, reason) = if is_available {
        ("True", "MinimumReplicasAvailable")
    } else {
        ("False", "MinimumReplicasUnavailable")
    };
    let known = &before["conditions"][0];
    if known["status"] == word {
        return before["conditions"].clone();
    }
    json!([{
        "type": "Available", "status": word, "reason": reason, "message": "",
        "lastTransitionTime": now, "lastUpdateTime": now,
    }])
}
