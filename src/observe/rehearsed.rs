//! Changes that were rehearsed before. The real object stays as it is, so that krane finds the same
//! difference again and again: while object and rendering are the same, so is the answer.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use krane_domain::object::{LiveObject, ObjectRef, Rendered};
use parking_lot::Mutex;

use super::journal::{Journal, What};

/// What was rehearsed with a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rehearsed {
    /// An apply of the rendering with this hash.
    Apply(u64),
    /// That others lose their ownership.
    Adopt,
}

impl Rehearsed {
    pub(super) fn apply(rendered: &Rendered) -> Self {
        let mut hasher = DefaultHasher::new();
        rendered.body.to_string().hash(&mut hasher);
        rendered.made_for.hash(&mut hasher);
        Self::Apply(hasher.finish())
    }
}

#[derive(Debug)]
struct Answer {
    /// The version of the live object, as far as is known.
    version: String,
    live: LiveObject,
    paths: Vec<String>,
}

/// The answers, each as long as its object is not seen in another version.
#[derive(Debug, Default)]
pub(super) struct Answers {
    all: Mutex<BTreeMap<ObjectRef, BTreeMap<Rehearsed, Answer>>>,
}

impl Answers {
    /// The answer to the same question about the same object; the journal hears of it again.
    pub(super) fn again(
        &self,
        object: &ObjectRef,
        uid: &str,
        what: Rehearsed,
        journal: &Journal,
    ) -> Option<LiveObject> {
        let all = self.all.lock();
        let answer = all.get(object)?.get(&what)?;
        if &*answer.live.uid != uid {
            return None;
        }
        journal.note(object, What::Update, answer.paths.clone());
        Some(answer.live.clone())
    }

    /// Keeps the answer for an object that was in this version.
    pub(super) fn keep(
        &self,
        what: Rehearsed,
        before: &LiveObject,
        live: &LiveObject,
        paths: Vec<String>,
    ) {
        let version = before.resource_version.to_string();
        let mut all = self.all.lock();
        let of_object = all.entry(live.reference.clone()).or_default();
        // One of each kind: an older rendering is asked about no more.
        of_object.retain(|other, answer| {
            std::mem::discriminant(other) != std::mem::discriminant(&what)
                && answer.version == version
        });
        let live = live.clone();
        of_object.insert(
            what,
            Answer {
                version,
                live,
                paths,
            },
        );
    }

    /// An object is in this version now.
    pub(super) fn saw(&self, live: &LiveObject) {
        let version = live.resource_version.to_string();
        let mut all = self.all.lock();
        if let Some(of_object) = all.get_mut(&live.reference) {
            of_object.retain(|_, answer| answer.version == version);
        }
    }

    /// An object is gone.
    pub(super) fn forget(&self, object: &ObjectRef) {
        self.all.lock().remove(object);
    }
}
