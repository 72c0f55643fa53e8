//! Flat `UNKEY_*` variables that are none, and that somebody most likely meant to be one.

use std::collections::BTreeMap;

use super::keys::{KEYS, OTEL_ENABLED};
use super::nearest::nearest;

const PREFIX: &str = "UNKEY_";
/// Names the configuration file.
pub(super) const CONFIG: &str = "UNKEY_CONFIG";

/// A variable that has no effect, and the one that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelt {
    /// The name as it is set.
    pub name: String,
    /// The name that would have an effect.
    pub meant: String,
}

/// Whatever is only close to a name of ours. Others may be anybody's: they are not judged.
pub(super) fn misspelt(env: &BTreeMap<String, String>) -> Vec<Misspelt> {
    let known: Vec<&str> = KEYS
        .iter()
        .filter_map(|key| key.flat)
        .chain([OTEL_ENABLED, CONFIG])
        .filter_map(|name| name.strip_prefix(PREFIX))
        .collect();
    let set = env.iter().filter_map(|(name, value)| {
        let rest = name.strip_prefix(PREFIX)?;
        let is_ours = known.contains(&rest);
        if is_ours || is_of_a_service(rest, value) {
            return None;
        }
        let meant = nearest(rest, known.iter().copied())?;
        Some(Misspelt {
            name: name.clone(),
            meant: format!("{PREFIX}{meant}"),
        })
    });
    set.collect()
}

/// Kubernetes gives every pod such variables for each Service of its namespace.
fn is_of_a_service(rest: &str, value: &str) -> bool {
    let is_of_a_port = rest.rsplit_once("_PORT_").is_some_and(|(_, port)| {
        let number = port.split('_').next().unwrap_or_default();
        number.parse::<u16>().is_ok()
    });
    rest.ends_with("_SERVICE_HOST")
        || rest.contains("_SERVICE_PORT")
        || is_of_a_port
        || (rest.ends_with("_PORT") && value.contains("://"))
}
