//! Autoscaling, volumes and ports.

use crate::invalid::Invalid;
use crate::kinds::Rules;
use crate::kinds::deployment::{Autoscaling, AutoscalingInput};
use crate::kinds::validation::{at_most_allowed, positive};

/// The port of workloads that name none.
pub(in crate::kinds::deployment) const DEFAULT_PORT: u16 = 8080;

/// 64 TiB: no storage class has a larger volume.
const MAX_EPHEMERAL_STORAGE_MIB: u64 = 64 * 1024 * 1024;

/// The bounds and targets of an autoscaler, when one is wanted.
pub(super) fn autoscaling(
    policy: Option<AutoscalingInput>,
    rules: &Rules,
) -> Result<Option<Autoscaling>, Invalid> {
    let Some(policy) = policy else {
        return Ok(None);
    };
    if policy.min_replicas == 0 {
        return Err(Invalid::new(
            "autoscaling.min_replicas",
            "is 0",
            "send 1 or more",
        ));
    }
    if policy.max_replicas < policy.min_replicas {
        return Err(Invalid::new(
            "autoscaling.max_replicas",
            format!(
                "{} is less than min_replicas {}",
                policy.max_replicas, policy.min_replicas
            ),
            "send at least min_replicas",
        ));
    }
    Ok(Some(Autoscaling {
        min_replicas: policy.min_replicas,
        max_replicas: at_most_allowed("autoscaling.max_replicas", policy.max_replicas, rules)?,
        cpu_threshold: threshold("autoscaling.cpu_threshold", policy.cpu_threshold)?,
        memory_threshold: threshold("autoscaling.memory_threshold", policy.memory_threshold)?,
    }))
}

/// Percent of a request. Over 100 is a target like any other: limits are above requests.
fn threshold(field: &str, percent: Option<i32>) -> Result<Option<u32>, Invalid> {
    let Some(percent) = percent else {
        return Ok(None);
    };
    match u32::try_from(percent) {
        Ok(percent) if percent > 0 => Ok(Some(percent)),
        Ok(_) | Err(_) => Err(Invalid::new(
            field,
            format!("{percent} is not positive"),
            "send 1 or more percent, or leave it out",
        )),
    }
}

pub(super) fn ephemeral_storage_mib(mebibytes: i64) -> Result<u64, Invalid> {
    positive(
        "ephemeral_storage.size_mib",
        mebibytes,
        MAX_EPHEMERAL_STORAGE_MIB,
    )
}

/// The container port; without one it is [`DEFAULT_PORT`].
pub(super) fn port(port: i32) -> Result<u16, Invalid> {
    if port <= 0 {
        return Ok(DEFAULT_PORT);
    }
    u16::try_from(port).map_err(|_| {
        Invalid::new(
            "port",
            format!("{port} is no port"),
            "send 1 to 65535, or 0 for 8080",
        )
    })
}
