//! `krane_vault_requests_total`

use prometheus::{IntCounterVec, Opts, Registry};

use super::{VAULT_CODES, VaultObserver};

/// Counts decryptions by their code.
#[derive(Clone, Debug)]
pub struct VaultMetrics {
    requests: IntCounterVec,
}

impl VaultMetrics {
    /// A counter for every code there is, from 0; registered with `registry`.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let options = Opts::new(
            "krane_vault_requests_total",
            "Decryptions asked of the vault, by Connect code.",
        );
        let requests = IntCounterVec::new(options, &["code"])?;
        for code in VAULT_CODES {
            requests.with_label_values(&[code]);
        }
        registry.register(Box::new(requests.clone()))?;
        Ok(Self { requests })
    }
}

impl VaultObserver for VaultMetrics {
    fn request(&self, code: &'static str) {
        self.requests.with_label_values(&[code]).inc();
    }
}
