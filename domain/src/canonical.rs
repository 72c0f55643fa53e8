//! Hashes of JSON that do not depend on the order of keys.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A stable 64-bit hash of a JSON tree, equal for equal trees whatever the order of their keys.
pub(crate) fn hash64(value: &Value) -> u64 {
    let digest = digest(value);
    digest
        .iter()
        .take(8)
        .fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

/// The first `length` hexadecimal digits of the same hash, at most 64.
pub(crate) fn hex(value: &Value, length: usize) -> String {
    hex_of(&digest(value), length)
}

/// The first `length` hexadecimal digits of the SHA-256 of a text, at most 64.
pub(crate) fn hex_of_text(text: &str, length: usize) -> String {
    hex_of(&Sha256::digest(text.as_bytes()), length)
}

fn hex_of(bytes: &[u8], length: usize) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .take(length)
        .collect()
}

fn digest(value: &Value) -> [u8; 32] {
    let mut hasher = Sha256::new();
    feed(value, &mut hasher);
    hasher.finalize().into()
}

/// Every value is tagged and every length counted, so that no two trees feed the same bytes.
fn feed(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Null => hasher.update(b"n"),
        Value::Bool(true) => hasher.update(b"t"),
        Value::Bool(false) => hasher.update(b"f"),
        Value::Number(number) => feed_text(b'd', &number.to_string(), hasher),
        Value::String(text) => feed_text(b's', text, hasher),
        Value::Array(items) => {
            hasher.update(b"[");
            hasher.update(items.len().to_le_bytes());
            for item in items {
                feed(item, hasher);
            }
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            hasher.update(b"{");
            hasher.update(entries.len().to_le_bytes());
            for (key, value) in entries {
                feed_text(b'k', key, hasher);
                feed(value, hasher);
            }
        }
    }
}

fn feed_text(tag: u8, text: &str, hasher: &mut Sha256) {
    hasher.update([tag]);
    hasher.update(text.len().to_le_bytes());
    hasher.update(text.as_bytes());
}
