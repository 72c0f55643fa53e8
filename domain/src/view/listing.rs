//! Complete lists that are under way, and what was shown meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::Resource;

/// The lists under way, at most one of each kind.
#[derive(Debug, Default)]
pub(super) struct Listings(BTreeMap<Resource, Listing>);

/// The uids that were shown, or that left, since a list was asked for.
#[derive(Debug, Default)]
pub(super) struct Listing {
    shown: BTreeSet<Arc<str>>,
    left: BTreeSet<Arc<str>>,
}

impl Listings {
    /// A list is asked for; one that is under way has failed.
    pub(super) fn begin(&mut self, resource: Resource) {
        self.0.insert(resource, Listing::default());
    }

    /// What came after the list was asked for. Of a list that nobody began, nothing did.
    pub(super) fn end(&mut self, resource: Resource) -> Listing {
        self.0.remove(&resource).unwrap_or_default()
    }

    pub(super) fn shown(&mut self, resource: Resource, uid: &Arc<str>) {
        if let Some(listing) = self.0.get_mut(&resource) {
            listing.left.remove(uid);
            listing.shown.insert(Arc::clone(uid));
        }
    }

    pub(super) fn left(&mut self, resource: Resource, uid: &str) {
        if let Some(listing) = self.0.get_mut(&resource) {
            listing.shown.remove(uid);
            listing.left.insert(uid.into());
        }
    }

    /// It may not have left after all.
    pub(super) fn doubted(&mut self, resource: Resource, uid: &str) {
        if let Some(listing) = self.0.get_mut(&resource) {
            listing.left.remove(uid);
        }
    }
}

impl Listing {
    pub(super) fn has_shown(&self, uid: &str) -> bool {
        self.shown.contains(uid)
    }

    pub(super) fn has_left(&self, uid: &str) -> bool {
        self.left.contains(uid)
    }
}
