//! Turns merged values into typed ones and writes down everything that is wrong on the way.

mod references;
mod secrets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use references::resolve;

use super::keys::{FILE_SUFFIX, Key, find};
use super::kind::{FromRaw, Kind};
use super::problem::{Problem, ProblemKind};
use super::raw::{Origin, Raw, show_text};
use super::secret::SecretError;
use super::tree::{Entry, Tree};
use super::types::Refusal;

/// A problem with this value is in the list already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recorded;

/// A typed value; `Err` means that its problem is recorded.
pub(super) type Read<T> = Result<T, Recorded>;

/// Reads keys out of a [`Tree`].
pub(super) struct Reader {
    tree: Tree,
    problems: Vec<Problem>,
}

impl Reader {
    /// Resolves `${…}` in what files gave. Values that a higher layer replaced are not looked at.
    pub(super) fn new(
        mut tree: Tree,
        problems: Vec<Problem>,
        env: &BTreeMap<String, String>,
    ) -> Self {
        let mut found = problems;
        for (path, entry) in tree.entries_mut() {
            if !matches!(entry.origin, Origin::File(_)) {
                continue;
            }
            if let Some(problem) = resolve(path, entry, env) {
                found.push(problem);
                entry.raw = Raw::Refused;
            }
        }
        Self {
            tree,
            problems: found,
        }
    }

    pub(super) fn finish(self) -> (Tree, Vec<Problem>) {
        (self.tree, self.problems)
    }

    pub(super) fn has_section(&self, path: &str) -> bool {
        self.tree.has_section(path)
    }

    pub(super) fn set_generated(&mut self, path: &str, text: String) {
        self.tree.set(path, Raw::Text(text), Origin::Generated);
    }

    /// A default that only counts when its section is present, so `default.toml` cannot hold it.
    pub(super) fn set_default(&mut self, path: &str, raw: Raw) {
        self.tree.set(path, raw, Origin::Default);
    }

    pub(super) fn set_from_variable(&mut self, path: &str, name: &str, text: String) {
        self.tree
            .set(path, Raw::Text(text), Origin::Variable(name.to_owned()));
    }

    /// Whether any layer mentions the path, be it with an empty value.
    pub(super) fn mentions(&self, path: &str) -> bool {
        self.entry_of(path).is_some()
    }

    /// Whether the path, or for a secret its file form, has a value that is not empty.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.entry_of(path)
            .is_some_and(|(_, entry)| !entry.raw.is_empty())
    }

    /// A key that must have a value.
    pub(super) fn required<T: FromRaw>(&mut self, path: &str) -> Read<T> {
        match self.optional(path)? {
            Some(value) => Ok(value),
            None => Err(self.missing(path)),
        }
    }

    /// A key that may be left out; an empty string counts as left out.
    pub(super) fn optional<T: FromRaw>(&mut self, path: &str) -> Read<Option<T>> {
        let (Some(entry), Some(key)) = (self.tree.get(path), find(path)) else {
            return Ok(None);
        };
        // For text, empty means unset. For a number or a switch it is an oversight.
        let unset = matches!(
            &key.kind,
            Kind::Text | Kind::Url | Kind::Path | Kind::Address
        );
        if entry.raw == Raw::Refused {
            return Err(Recorded);
        }
        if entry.raw == Raw::Text(String::new()) && unset {
            return Ok(None);
        }
        match T::from_raw(&entry.raw, &key.kind) {
            Ok(value) => Ok(Some(value)),
            Err(refusal) => {
                let entry = entry.clone();
                Err(self.refuse(key, &entry, refusal))
            }
        }
    }

    /// A file that must be readable when krane starts.
    pub(super) fn optional_file(&mut self, path: &str) -> Read<Option<PathBuf>> {
        let Some(file) = self.optional::<PathBuf>(path)? else {
            return Ok(None);
        };
        match std::fs::File::open(&file) {
            Ok(_) => Ok(Some(file)),
            Err(error) => {
                let origin = self.tree.get(path).map(|entry| entry.origin.clone());
                let error = SecretError::Read(error.kind());
                Err(self.unusable_file(path, origin.unwrap_or(Origin::Default), &file, &error))
            }
        }
    }

    fn unusable_file(
        &mut self,
        key: &str,
        origin: Origin,
        file: &Path,
        error: &SecretError,
    ) -> Recorded {
        // A relative one says too little: where krane was started nobody remembers.
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        self.unusable(key, origin, path.display().to_string(), error)
    }

    fn unusable(
        &mut self,
        key: &str,
        origin: Origin,
        path: String,
        error: &SecretError,
    ) -> Recorded {
        let kind = ProblemKind::FileUnusable {
            path,
            reason: error.to_string(),
        };
        let help = "check that the file is mounted, readable and not empty".to_owned();
        self.record(key, None, Some(origin), kind, help)
    }

    /// Records a problem with a path that has, or should have had, a value.
    pub(super) fn wrong(&mut self, path: &str, kind: ProblemKind, help: String) -> Recorded {
        let entry = self.entry_of(path).map(|(_, entry)| entry.clone());
        let secret = find(path).is_some_and(|key| key.kind.is_secret());
        let value = entry
            .as_ref()
            .filter(|_| !secret)
            .map(|entry| entry.raw.show());
        self.record(path, value, entry.map(|entry| entry.origin), kind, help)
    }

    /// Records a problem with a variable that is no key.
    pub(super) fn wrong_variable(
        &mut self,
        name: &str,
        text: &str,
        kind: ProblemKind,
        help: String,
    ) -> Recorded {
        let origin = Origin::Variable(name.to_owned());
        self.record(name, Some(show_text(text)), Some(origin), kind, help)
    }

    fn missing(&mut self, path: &str) -> Recorded {
        let help = match find(path) {
            Some(key) if key.kind.is_secret() => {
                format!(
                    "set {path}{FILE_SUFFIX}, such as \"{}\", or {}",
                    key.example,
                    key.variable()
                )
            }
            Some(key) => format!(
                "set {path}, such as \"{}\", or {}",
                key.example,
                key.variable()
            ),
            None => format!("set {path}"),
        };
        self.wrong(path, ProblemKind::Missing, help)
    }

    fn refuse(&mut self, key: &Key, entry: &Entry, refusal: Refusal) -> Recorded {
        let kind = match refusal {
            Refusal::WrongType(found) => ProblemKind::WrongType {
                expected: key.kind.describe(),
                found,
            },
            Refusal::OutOfRange => ProblemKind::OutOfRange(key.kind.describe()),
            Refusal::Malformed(reason) => ProblemKind::Malformed(reason),
        };
        let (value, help) = if key.kind.is_secret() {
            let quotes = "give the secret as one quoted line without a line break";
            (
                None,
                format!("{quotes}, or its file in {}{FILE_SUFFIX}", key.path),
            )
        } else {
            let help = format!(
                "set {} to {}, such as {}",
                key.path,
                key.kind.describe(),
                key.example
            );
            (Some(entry.raw.show()), help)
        };
        self.record(key.path, value, Some(entry.origin.clone()), kind, help)
    }

    fn record(
        &mut self,
        key: &str,
        value: Option<String>,
        origin: Option<Origin>,
        kind: ProblemKind,
        help: String,
    ) -> Recorded {
        self.problems.push(Problem {
            key: key.to_owned(),
            value,
            origin,
            kind,
            help,
        });
        Recorded
    }

    fn entry_of(&self, path: &str) -> Option<(String, &Entry)> {
        let file_path = format!("{path}{FILE_SUFFIX}");
        let direct = self.tree.get(path).map(|entry| (path.to_owned(), entry));
        let file = self.tree.get(&file_path).map(|entry| (file_path, entry));
        match (direct, file) {
            (Some(direct), Some(file)) if direct.1.raw.is_empty() => Some(file),
            (Some(direct), _) => Some(direct),
            (None, file) => file,
        }
    }
}
