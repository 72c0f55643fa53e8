//! Snapshots of everything stored, and going back to one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{Event, Key, Store, Version};

/// Everything that was stored, as etcd saves it.
#[derive(Clone)]
pub struct Backup {
    objects: BTreeMap<Key, Arc<Version>>,
    uids: BTreeMap<Arc<str>, Key>,
    dependents: BTreeMap<Arc<str>, BTreeSet<Key>>,
    version: u64,
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backup of version {}", self.version)
    }
}

impl Store {
    pub(in crate::cluster) fn backup(&self) -> Backup {
        Backup {
            objects: self.objects.clone(),
            uids: self.uids.clone(),
            dependents: self.dependents.clone(),
            version: self.version,
        }
    }

    /// Everything is as it was; versions count from there, or from `bump` further. Nothing of what
    /// happened is known any more.
    pub(in crate::cluster) fn restore(&mut self, backup: &Backup, bump: u64) {
        self.objects.clone_from(&backup.objects);
        self.uids.clone_from(&backup.uids);
        self.dependents.clone_from(&backup.dependents);
        self.version = backup.version + bump;
        self.compact();
    }

    /// Every object as if it had just come.
    pub(in crate::cluster) fn arrivals(&self) -> Vec<Event> {
        let objects = self.objects.iter();
        let arrival = |(key, version): (&Key, &Arc<Version>)| Event {
            version: version.resource_version,
            key: key.clone(),
            before: None,
            after: Some(Arc::clone(version)),
            left: OnceLock::new(),
        };
        objects.map(arrival).collect()
    }
}
