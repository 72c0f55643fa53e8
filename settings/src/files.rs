//! The files of secrets, read again while krane runs (D42).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{SecretSource, Settings, Vault};

/// The files that hold secrets, with what the last look at each found. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct SecretFiles {
    files: Arc<[SecretFile]>,
}

#[derive(Debug)]
struct SecretFile {
    key: &'static str,
    source: SecretSource,
    failing_since: Mutex<Option<Duration>>,
}

/// A file that cannot be used: its last good copy stays in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableFile {
    /// The key that names it.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
    /// Since when, by the clock of the looks.
    pub since: Duration,
}

impl SecretFiles {
    /// The files that these settings name.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let mut all = vec![("control.token_file", &settings.control.token)];
        if let Some(registry) = &settings.registry {
            all.push(("registry.password_file", &registry.password));
        }
        match &settings.vault {
            None | Some(Vault::Remote { token: None, .. }) => {}
            Some(Vault::Remote {
                token: Some(token), ..
            }) => all.push(("vault.token_file", token)),
            Some(Vault::Embedded { master_keys, s3 }) => {
                all.push(("vault.master_keys_file", master_keys));
                all.push(("vault.s3.access_key_secret_file", &s3.access_key_secret));
            }
        }
        if let Some(token) = &settings.scheduler.token {
            all.push(("scheduler.token_file", token));
        }
        if let Some(token) = &settings.admin.token {
            all.push(("admin.token_file", token));
        }
        let all = all.into_iter();
        all.map(|(key, source)| (key, source.clone())).collect()
    }

    /// Whether there is nothing to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Looks at every file; it may block. Returns whether one is just being changed, so that
    /// another look is due soon.
    #[must_use]
    pub fn refresh(&self, now: Duration) -> bool {
        let mut is_changing = false;
        for file in self.files.iter() {
            is_changing |= file.source.refresh();
            let has_failed = file.source.failure().is_some();
            let mut since = file.failing_since.lock();
            *since = has_failed.then(|| since.unwrap_or(now));
        }
        is_changing
    }

    /// The files that could not be used at the last look.
    #[must_use]
    pub fn unusable(&self) -> Vec<UnusableFile> {
        let found = self.files.iter().filter_map(|file| {
            Some(UnusableFile {
                key: file.key,
                path: file.source.path()?.to_owned(),
                reason: file.source.failure()?,
                since: (*file.failing_since.lock())?,
            })
        });
        found.collect()
    }
}

/// Of these secrets, each with the key of its file, those that are in one.
impl FromIterator<(&'static str, SecretSource)> for SecretFiles {
    fn from_iter<I: IntoIterator<Item = (&'static str, SecretSource)>>(all: I) -> Self {
        let files = all
            .into_iter()
            .filter(|(_, source)| source.path().is_some());
        let files = files.map(|(key, source)| SecretFile {
            key,
            source,
            failing_since: Mutex::new(None),
        });
        Self {
            files: files.collect(),
        }
    }
}
