//! The merged values of all layers, each with its origin.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{FILE_SUFFIX, find};
use super::raw::{Origin, Raw};

/// The winning value of one path.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) raw: Raw,
    pub(super) origin: Origin,
    layer: usize,
}

/// Path → winning value, and the sections that exist.
#[derive(Default)]
pub(super) struct Tree {
    entries: BTreeMap<String, Entry>,
    sections: BTreeSet<String>,
    layer: usize,
}

impl Tree {
    /// Everything set from now on wins over what was set before.
    pub(super) fn begin_layer(&mut self) {
        self.layer += 1;
    }

    /// Sets a path. A secret and its file form replace each other across layers, so that a
    /// variable can override a file's `token_file` and the other way round.
    pub(super) fn set(&mut self, path: &str, raw: Raw, origin: Origin) {
        let other_form = match path.strip_suffix(FILE_SUFFIX) {
            Some(secret) if find(path).is_none() => secret.to_owned(),
            _ => format!("{path}{FILE_SUFFIX}"),
        };
        if self
            .entries
            .get(&other_form)
            .is_some_and(|entry| entry.layer < self.layer)
        {
            self.entries.remove(&other_form);
        }
        self.entries.insert(
            path.to_owned(),
            Entry {
                raw,
                origin,
                layer: self.layer,
            },
        );
    }

    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = (&String, &mut Entry)> {
        self.entries.iter_mut()
    }

    pub(super) fn open_section(&mut self, path: &str) {
        self.sections.insert(path.to_owned());
    }

    /// Forgets a section and everything that lower layers set in it.
    pub(super) fn remove_section(&mut self, path: &str) {
        self.sections.remove(path);
        self.entries.retain(|key, _| {
            !key.strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.'))
        });
    }

    pub(super) fn has_section(&self, path: &str) -> bool {
        self.sections.contains(path)
    }
}
