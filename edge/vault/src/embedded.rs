//! The vault in this process: its stored keys are read from a bucket, nothing is ever written.
//!
//! A value's envelope names a data key, which is at `keyring/<key ring>/<id>`, encrypted with one
//! of the master keys. Everything that goes wrong is `Refused` unless the store is away: a bad
//! value or a missing key does not get better, and must not open a breaker for everybody else.

mod cache;
mod envelope;
mod master_keys;
mod name;
mod store;
mod survey;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cache::{KeyCache, Limits, Read};
pub use envelope::MasterKeyError;
use envelope::{Envelope, MasterKeys, NoDataKey};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use krane_domain::secret::Secret;
use krane_ports::{Vault, VaultFailure};
use krane_settings::{S3, SecretSource};
use master_keys::MasterKeySource;
use name::{BadName, KeyName};
use object_store::ObjectStore;
use store::KeyStore;
pub use store::StoreSetupError;
pub use survey::{Damaged, Locked, Survey};
use tonic::Code;

use super::{refused, shown};

/// Data keys that one call reads at once. A key ring has one or two.
const READS_AT_ONCE: usize = 8;

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedTiming {
    /// For one object, from connecting to its last byte.
    pub read: Duration,
    /// After which a data key is read again.
    pub fresh: Duration,
    /// After which a data key is not used any more, though the store is away.
    pub stale: Duration,
    /// After a failed read, until the store is asked for the same key again.
    pub pause: Duration,
}

impl Default for EmbeddedTiming {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            read: Duration::from_secs(5),
            fresh: limits.fresh,
            stale: limits.stale,
            pause: limits.pause,
        }
    }
}

/// Decrypts with master keys of its own and data keys out of a bucket.
pub struct EmbeddedVault {
    master_keys: MasterKeySource,
    store: KeyStore,
    cache: KeyCache,
}

impl EmbeddedVault {
    /// Checks master keys and address; asks the bucket for nothing yet.
    pub fn new(
        master_keys: SecretSource,
        s3: &S3,
        timing: EmbeddedTiming,
    ) -> Result<Self, super::VaultSetupError> {
        let store = KeyStore::s3(s3, timing.read)?;
        Ok(Self::with_store(master_keys, store, timing)?)
    }

    /// The same over any store, such as one in memory.
    pub fn over(
        master_keys: SecretSource,
        objects: Arc<dyn ObjectStore>,
        timing: EmbeddedTiming,
    ) -> Result<Self, MasterKeyError> {
        Self::with_store(master_keys, KeyStore::new(objects, timing.read), timing)
    }

    fn with_store(
        master_keys: SecretSource,
        store: KeyStore,
        timing: EmbeddedTiming,
    ) -> Result<Self, MasterKeyError> {
        let limits = Limits {
            fresh: timing.fresh,
            stale: timing.stale,
            pause: timing.pause,
            ..Limits::default()
        };
        Ok(Self {
            master_keys: MasterKeySource::new(master_keys)?,
            store,
            cache: KeyCache::new(limits),
        })
    }

    /// Looks whether the configured master keys open every stored key.
    pub async fn survey(&self) -> Result<Survey, VaultFailure> {
        survey::survey(&self.store, &self.master_keys.current().0).await
    }

    fn read(&self, name: &KeyName, master_keys: &Arc<MasterKeys>) -> Read {
        let (store, name) = (self.store.clone(), name.clone());
        let master_keys = Arc::clone(master_keys);
        async move {
            let object = store.read(&name.path()).await;
            let object = object.map_err(|failure| failure.about(&name))?;
            match master_keys.open(&object) {
                Ok((key, _)) => Ok(Arc::new(key)),
                Err(why) => Err(no_data_key(&name, &why)),
            }
        }
        .boxed()
    }
}

impl fmt::Debug for EmbeddedVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedVault").finish_non_exhaustive()
    }
}

#[async_trait]
impl Vault for EmbeddedVault {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        name::check_ring(key_ring).map_err(bad_name)?;
        let mut envelopes = BTreeMap::new();
        let mut names = BTreeSet::new();
        for (item, text) in items {
            let envelope = Envelope::parse(text).map_err(|why| bad_value(item, &why))?;
            let name = KeyName::new(key_ring, envelope.key_id()).map_err(bad_name)?;
            names.insert(name.clone());
            envelopes.insert(item, (name, envelope));
        }
        let (master_keys, are_new) = self.master_keys.current();
        if are_new {
            // What a master key opened must not outlive it.
            self.cache.clear();
        }
        let master_keys = &master_keys;
        let keys: BTreeMap<_, _> = stream::iter(names)
            .map(|name| async move {
                let read = || self.read(&name, master_keys);
                let key = self.cache.get(&name, read).await?;
                Ok::<_, VaultFailure>((name, key))
            })
            .buffer_unordered(READS_AT_ONCE)
            .try_collect()
            .await?;
        let mut texts = BTreeMap::new();
        for (item, (name, envelope)) in envelopes {
            // Every name has its key here; a defect must not be a panic with a tenant's data around.
            let key = keys.get(&name).ok_or_else(|| {
                refused(
                    Code::Internal,
                    "a data key was read and is not there: a defect of krane",
                )
            })?;
            let text = envelope.text(key).map_err(|why| bad_value(item, &why))?;
            texts.insert(item.clone(), text);
        }
        Ok(texts)
    }
}

fn bad_value(item: &str, why: &dyn fmt::Display) -> VaultFailure {
    let item = shown(item);
    refused(
        Code::InvalidArgument,
        format!("the value of {item} cannot be decrypted: {why}"),
    )
}

fn bad_name(bad: BadName) -> VaultFailure {
    let message = match bad {
        BadName::Ring => "the key ring has a name that no key ring can have",
        BadName::Id => "a value names a data key that cannot exist",
    };
    refused(Code::InvalidArgument, message)
}

fn no_data_key(name: &KeyName, why: &NoDataKey) -> VaultFailure {
    let code = match why {
        // Somebody can add the master key.
        NoDataKey::UnknownMasterKey(_) => Code::FailedPrecondition,
        NoDataKey::Stored(_) | NoDataKey::DoesNotOpen(_) | NoDataKey::Inside { .. } => {
            Code::DataLoss
        }
    };
    refused(code, format!("the {name} cannot be used: {why}"))
}
