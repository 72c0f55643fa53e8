//! Counts and sizes.

use crate::invalid::Invalid;
use crate::kinds::Rules;

/// 1,000 cores: no node is larger, and no sum of requests overflows.
const MAX_CPU_MILLICORES: u64 = 1_000_000;

/// 64 TiB, for the same reasons.
const MAX_MEMORY_MIB: u64 = 64 * 1024 * 1024;

/// Pods wanted.
pub(in crate::kinds) fn replicas(replicas: i32, rules: &Rules) -> Result<u32, Invalid> {
    let count = u32::try_from(replicas).map_err(|_| {
        Invalid::new(
            "replicas",
            format!("{replicas} is negative"),
            "send 0 or more",
        )
    })?;
    at_most_allowed("replicas", count, rules)
}

/// At most as many as one workload may have here.
pub(in crate::kinds) fn at_most_allowed(
    field: &str,
    count: u32,
    rules: &Rules,
) -> Result<u32, Invalid> {
    if count <= rules.max_replicas {
        return Ok(count);
    }
    Err(Invalid::new(
        field,
        format!(
            "{count} is more than the {} allowed here",
            rules.max_replicas
        ),
        "ask for fewer, or raise deployments.max_replicas",
    ))
}

/// A CPU limit in thousandths of a core.
pub(in crate::kinds) fn cpu_millicores(millicores: i64) -> Result<u64, Invalid> {
    positive("cpu_millicores", millicores, MAX_CPU_MILLICORES)
}

/// A memory limit in MiB.
pub(in crate::kinds) fn memory_mib(mebibytes: i64) -> Result<u64, Invalid> {
    positive("memory_mib", mebibytes, MAX_MEMORY_MIB)
}

/// A number from 1 to `limit`.
pub(in crate::kinds) fn positive(field: &str, number: i64, limit: u64) -> Result<u64, Invalid> {
    match u64::try_from(number) {
        Ok(number) if number > limit => Err(Invalid::new(
            field,
            format!("{number} is more than {limit}"),
            "send what a node can have",
        )),
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => Err(Invalid::new(
            field,
            format!("{number} is not positive"),
            "send 1 or more",
        )),
    }
}
