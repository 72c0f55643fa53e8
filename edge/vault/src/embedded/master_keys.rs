//! The master keys as they are now: their file may change while krane runs.

use std::sync::Arc;

use krane_settings::SecretSource;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};

use super::envelope::{MasterKeyError, MasterKeys};

/// Reads the list again whenever it is asked, and parses it when it changed.
pub(super) struct MasterKeySource {
    source: SecretSource,
    last: Mutex<LastRead>,
}

struct LastRead {
    /// What was parsed last, or tried in vain.
    text: SecretString,
    /// The last good keys.
    keys: Arc<MasterKeys>,
}

impl MasterKeySource {
    pub(super) fn new(source: SecretSource) -> Result<Self, MasterKeyError> {
        let text = source.current();
        let keys = Arc::new(MasterKeys::parse(&source.current_list())?);
        let last = Mutex::new(LastRead { text, keys });
        Ok(Self { source, last })
    }

    /// The keys, and whether they are others than before. While the list cannot be used the last
    /// good one stays in use, and one warning is logged.
    pub(super) fn current(&self) -> (Arc<MasterKeys>, bool) {
        let text = self.source.current();
        let mut last = self.last.lock();
        if text.expose_secret() == last.text.expose_secret() {
            return (Arc::clone(&last.keys), false);
        }
        last.text = text;
        match MasterKeys::parse(&self.source.current_list()) {
            Ok(keys) => {
                last.keys = Arc::new(keys);
                tracing::info!("the master keys have changed");
                (Arc::clone(&last.keys), true)
            }
            Err(error) => {
                tracing::warn!(%error, "the master keys cannot be used, the last good ones stay");
                (Arc::clone(&last.keys), false)
            }
        }
    }
}
