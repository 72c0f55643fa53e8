//! A look at every stored key: which master key opens it, and which ones nobody opens.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use krane_ports::VaultFailure;
use serde::Serialize;

use super::envelope::{MasterKeys, NoDataKey};
use super::store::{KeyStore, StoreFailure};

/// Objects that are read at once.
const READS_AT_ONCE: usize = 16;

/// What there is below the key rings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// How many keys each configured master key opens; 0 for one that nothing needs.
    pub opened: BTreeMap<String, usize>,
    /// Those that no configured master key opens, by object.
    pub locked: Vec<Locked>,
    /// Those that are no stored keys, by object.
    pub damaged: Vec<Damaged>,
}

/// A stored key that stays closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Locked {
    /// Its key in the bucket.
    pub object: String,
    /// The id of the master key that it was encrypted with.
    pub master_key: String,
    /// Whether there is a master key of that id, and it does not open it all the same.
    pub is_configured: bool,
}

/// An object that is no stored key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// Its key in the bucket.
    pub object: String,
    /// What it lacks.
    pub why: String,
}

impl Survey {
    /// Everything that was looked at.
    pub fn objects(&self) -> usize {
        self.opened.values().sum::<usize>() + self.locked.len() + self.damaged.len()
    }

    /// Whether every stored key can be opened.
    pub fn is_calm(&self) -> bool {
        self.locked.is_empty() && self.damaged.is_empty()
    }
}

pub(super) async fn survey(
    store: &KeyStore,
    master_keys: &MasterKeys,
) -> Result<Survey, VaultFailure> {
    let mut survey = Survey {
        opened: master_keys.ids().map(|id| (id.to_owned(), 0)).collect(),
        ..Survey::default()
    };
    let mut objects = store
        .list()
        .map_err(|failure| failure.about(&"the list of stored keys"))
        .map_ok(|path| async move {
            let read = store.read(&path).await;
            Ok::<_, VaultFailure>((path, read))
        })
        .try_buffered(READS_AT_ONCE);
    while let Some((path, read)) = objects.try_next().await? {
        let object = path.to_string();
        let damaged = |why: String| Damaged {
            object: object.clone(),
            why,
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            // It was there when the list was made.
            Err(StoreFailure::NoObject) => continue,
            Err(StoreFailure::TooLong) => {
                let why = "it is longer than a stored key".to_owned();
                survey.damaged.push(damaged(why));
                continue;
            }
            Err(
                failure @ (StoreFailure::NoBucket
                | StoreFailure::Denied
                | StoreFailure::Away(_)
                | StoreFailure::TimedOut(_)),
            ) => return Err(failure.about(&object)),
        };
        let locked = |master_key: String, is_configured| Locked {
            object: object.clone(),
            master_key,
            is_configured,
        };
        match master_keys.open(&bytes) {
            Ok((_, id)) => *survey.opened.entry(id).or_default() += 1,
            Err(NoDataKey::UnknownMasterKey(id)) => survey.locked.push(locked(id, false)),
            Err(NoDataKey::DoesNotOpen(id)) => survey.locked.push(locked(id, true)),
            Err(why @ (NoDataKey::Stored(_) | NoDataKey::Inside { .. })) => {
                survey.damaged.push(damaged(why.to_string()));
            }
        }
    }
    Ok(survey)
}
