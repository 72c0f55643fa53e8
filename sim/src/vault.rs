//! A vault in memory: it knows what it was given, and nothing is encrypted for real.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use krane_domain::secret::Secret;
use krane_ports::{Vault, VaultFailure, VaultFailureKind};
use parking_lot::Mutex;

use crate::hooks::{Hooks, Op};

/// The vault. Clones are the same vault.
#[derive(Clone, Default)]
pub struct SimVault {
    values: Arc<Mutex<BTreeMap<(String, String), Secret>>>,
    calls: Arc<AtomicU64>,
    hooks: Hooks<VaultFailure>,
}

impl SimVault {
    /// Takes a value into a key ring; what it returns stands for it.
    pub fn encrypt(&self, key_ring: &str, plaintext: &str) -> String {
        let mut values = self.values.lock();
        let ciphertext = format!("sealed-{:08}", values.len());
        let key = (key_ring.to_owned(), ciphertext.clone());
        values.insert(key, Secret::new(plaintext.to_owned()));
        ciphertext
    }

    /// The blob of an environment's variables, as the control plane sends it.
    pub fn blob(&self, key_ring: &str, variables: &[(&str, &str)]) -> Vec<u8> {
        let sealed = variables.iter().map(|(name, plaintext)| {
            let value = self.encrypt(key_ring, plaintext);
            ((*name).to_owned(), serde_json::Value::from(value))
        });
        let secrets: serde_json::Map<_, _> = sealed.collect();
        serde_json::json!({ "secrets": secrets })
            .to_string()
            .into_bytes()
    }

    /// How often it was asked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What is asked about every call; calls are `decrypt`, their subject is the key ring.
    pub fn hooks(&self) -> &Hooks<VaultFailure> {
        &self.hooks
    }
}

/// A failure as a vault that is not well has it.
pub fn unavailable() -> VaultFailure {
    VaultFailure {
        kind: VaultFailureKind::Unavailable,
        code: "unavailable",
        message: "the vault in memory was told to fail".to_owned(),
    }
}

#[async_trait]
impl Vault for SimVault {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        let op = Op {
            call: "decrypt",
            subject: key_ring.to_owned(),
            number: self.calls.fetch_add(1, Ordering::Relaxed),
        };
        let call = async {
            let values = self.values.lock();
            let opened = items.iter().map(|(name, value)| {
                let plaintext = values.get(&(key_ring.to_owned(), value.clone()));
                let plaintext = plaintext.ok_or_else(|| VaultFailure {
                    kind: VaultFailureKind::Refused,
                    code: "invalid_argument",
                    message: "a value is not of this key ring".to_owned(),
                })?;
                Ok((name.clone(), plaintext.clone()))
            });
            opened.collect()
        };
        self.hooks.around(&op, unavailable, call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_value_opens_in_its_own_key_ring_and_all_or_none_are_given() {
        let vault = SimVault::default();
        let item = |value: String| ("A".to_owned(), value);
        let one = BTreeMap::from([item(vault.encrypt("env_1", "plain"))]);
        let opened = vault.decrypt("env_1", &one).await.unwrap();
        assert_eq!(opened["A"].expose(), "plain");
        let refused = vault.decrypt("env_2", &one).await.unwrap_err();
        assert_eq!(refused.kind, VaultFailureKind::Refused);
        let mut two = one;
        two.insert("B".to_owned(), "sealed-99999999".to_owned());
        assert!(vault.decrypt("env_1", &two).await.is_err());
        assert_eq!(vault.calls(), 3);
    }
}
