//! The blob of a request: JSON of a `ctrl.v1.SecretsConfig`, each value encrypted on its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A blob that is no `SecretsConfig`. It says where, never what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the blob is no SecretsConfig: it stops making sense at line {line}, column {column}")]
pub struct MalformedBlob {
    /// Line in the blob, from 1.
    pub line: usize,
    /// Column in that line, from 1; 0 when the blob ends before it is complete.
    pub column: usize,
}

/// The object around the secrets: `{"secrets": {…}}` and nothing else.
struct SecretsConfig(Entries);

impl<'de> Deserialize<'de> for SecretsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A derived struct would take a list for one, too.
        deserializer.deserialize_map(ConfigVisitor)
    }
}

struct ConfigVisitor;

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = SecretsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with secrets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretsConfig, A::Error> {
        let mut secrets = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "secrets" || secrets.is_some() {
                return Err(A::Error::custom("not what an object with secrets has"));
            }
            secrets = Some(map.next_value::<Option<Entries>>()?.unwrap_or_default());
        }
        Ok(SecretsConfig(secrets.unwrap_or_default()))
    }
}

/// Names to ciphertexts. A name given twice would leave open which of the two is meant.
#[derive(Default)]
struct Entries(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of names to texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if entries.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is given twice"));
            }
        }
        Ok(Entries(entries))
    }
}

/// The names and ciphertexts of a blob, as strictly as `protojson` reads it.
pub fn parse_blob(blob: &[u8]) -> Result<BTreeMap<String, String>, MalformedBlob> {
    let config: SecretsConfig = serde_json::from_slice(blob).map_err(|error| MalformedBlob {
        line: error.line(),
        column: error.column(),
    })?;
    let SecretsConfig(Entries(entries)) = config;
    Ok(entries)
}
