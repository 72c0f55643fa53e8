//! The vault as the port [`Vault`]: a service that is asked ([`RemoteVault`]), or its stored keys
//! read in this process ([`EmbeddedVault`]), as the settings say (D31).
//!
//! What a failure means for whoever asks, see `remote::failure`. No message of either
//! holds more than a code, names and krane's own words: a vault may send back what it was sent.

mod embedded;
mod metrics;
mod remote;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
pub use embedded::{
    Damaged, EmbeddedTiming, EmbeddedVault, Locked, MasterKeyError, StoreSetupError, Survey,
};
use krane_domain::secret::Secret;
use krane_ports::{Vault, VaultFailure, VaultFailureKind};
pub use metrics::VaultMetrics;
pub use remote::{RemoteSetupError, RemoteTiming, RemoteVault};
use tonic::Code;

use krane_proto::codes;
use krane_settings as settings;

/// Hears of every decryption that is over, for `krane_vault_requests_total`.
pub trait VaultObserver: Send + Sync + 'static {
    /// One ended with this Connect code, `ok` if it went well and `canceled` if whoever asked did
    /// not wait: a closed set, [`VAULT_CODES`].
    fn request(&self, code: &'static str);
}

/// Hears and forgets.
impl VaultObserver for () {
    fn request(&self, _: &'static str) {}
}

/// Every value of the label `code`.
pub const VAULT_CODES: [&str; codes::NAMES.len()] = codes::NAMES;

/// Why there is no vault though one is configured; each is a mistake in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum VaultSetupError {
    /// The service of `vault.url` cannot be addressed.
    #[error("the vault at vault.url cannot be asked")]
    Remote(#[from] RemoteSetupError),
    /// One of `vault.master_keys` is none.
    #[error("vault.master_keys cannot be used")]
    MasterKeys(#[from] MasterKeyError),
    /// The bucket of `vault.s3` cannot be addressed.
    #[error("the bucket of vault.s3 cannot be read")]
    Store(#[from] StoreSetupError),
}

/// The vault that the settings name, if they name one. Connects to nothing yet.
pub fn from_settings(
    vault: Option<&settings::Vault>,
    observer: Arc<dyn VaultObserver>,
) -> Result<Option<Arc<dyn Vault>>, VaultSetupError> {
    let Some(vault) = vault else {
        return Ok(None);
    };
    let vault: Arc<dyn Vault> = match vault {
        settings::Vault::Remote { url, token } => {
            let vault = RemoteVault::new(url.uri(), token.clone(), RemoteTiming::default())?;
            Arc::new(Observed { vault, observer })
        }
        settings::Vault::Embedded { master_keys, s3 } => {
            let vault = EmbeddedVault::new(master_keys.clone(), s3, EmbeddedTiming::default())?;
            Arc::new(Observed { vault, observer })
        }
    };
    Ok(Some(vault))
}

/// Tells of every decryption how it ended.
struct Observed<V> {
    vault: V,
    observer: Arc<dyn VaultObserver>,
}

#[async_trait]
impl<V: Vault> Vault for Observed<V> {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        let mut ending = Ending {
            observer: &*self.observer,
            code: codes::name(Code::Cancelled),
        };
        let result = self.vault.decrypt(key_ring, items).await;
        ending.code = match &result {
            Ok(_) => codes::name(Code::Ok),
            Err(failure) => failure.code,
        };
        result
    }
}

/// Tells also of what was dropped half way.
struct Ending<'a> {
    observer: &'a dyn VaultObserver,
    code: &'static str,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.observer.request(self.code);
    }
}

/// A failure in the port's words.
fn failure(kind: VaultFailureKind, code: Code, message: &str) -> VaultFailure {
    VaultFailure {
        kind,
        code: codes::name(code),
        message: krane_domain::words::cut(message.replace(char::is_control, " ")),
    }
}

fn refused(code: Code, message: impl Into<String>) -> VaultFailure {
    failure(VaultFailureKind::Refused, code, &message.into())
}

fn unavailable(code: Code, message: impl Into<String>) -> VaultFailure {
    failure(VaultFailureKind::Unavailable, code, &message.into())
}

/// The name of a value as a message shows it: tenants choose it.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    format!("\"{}\"", short.escape_default())
}

#[cfg(test)]
mod tests;
