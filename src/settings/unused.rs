//! Keys that are read and checked, and that this version does not act on yet.
//!
//! Nobody may believe that a setting works because it was accepted. Whoever builds the part that
//! a key belongs to takes the key out of the table; a test compares it with the code.

use super::effective::Effective;
use super::raw::Origin;

/// A key without a part behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedKey {
    /// The TOML path.
    pub path: &'static str,
    /// What an operator would expect of it, and does not get: "no gRPC reflection is served".
    pub missing: &'static str,
}

/// All of them, in the order of [`super::KEYS`].
pub const UNUSED: &[UnusedKey] = &[];

/// A key of [`UNUSED`] that somebody set to something else than its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetInVain {
    /// The key.
    pub key: UnusedKey,
    /// Who set it.
    pub origin: Origin,
}

/// What in this configuration has no effect. An equal value in another form counts as set.
pub(super) fn set_in_vain(effective: &Effective, defaults: &Effective) -> Vec<SetInVain> {
    let mut found = Vec::new();
    for key in UNUSED {
        let set = effective.value_of(key.path);
        let default = defaults.value_of(key.path);
        let (Some(set), Some(default)) = (set, default) else {
            continue;
        };
        let is_default = bare(set.shown.as_deref()) == bare(default.shown.as_deref());
        if let Some(origin) = set.origin.clone().filter(|_| !is_default) {
            found.push(SetInVain { key: *key, origin });
        }
    }
    found
}

/// A variable gives `"false"` where a file gives `false`.
fn bare(shown: Option<&str>) -> &str {
    shown.unwrap_or_default().trim_matches('"')
}
