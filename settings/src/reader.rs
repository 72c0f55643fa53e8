//! Turns merged values into typed ones and writes down everything that is wrong on the way.

mod references;
mod secrets;

use std::path::Path;

use references::resolve;

use super::keys::{FILE_SUFFIX, Key, find};
use super::kind::{FromRaw, Kind};
use super::problem::{Problem, ProblemKind};
use super::raw::{Origin, Raw, show_text};
use super::secret::SecretError;
use super::tree::{Entry, Tree};
use super::types::Refusal;
use super::{LoadInput, SecretSource};

/// A problem with this value is in the list already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recorded;

/// A typed value; `Err` means that its problem is recorded.
pub(super) type Read<T> = Result<T, Recorded>;

/// What is read from one key, or from all keys of a section; `path` names it.
pub(super) trait Setting: Sized {
    fn read(r: &mut Reader<'_>, path: &str) -> Read<Self>;
}

/// A section that is there when all its keys are.
pub(super) trait Group: Sized {
    const PATHS: &'static [&'static str];

    /// Reads every key; `None` when one of them is not set.
    fn parts(r: &mut Reader<'_>) -> Read<Option<Self>>;
}

impl<T: FromRaw> Setting for T {
    fn read(r: &mut Reader<'_>, path: &str) -> Read<Self> {
        <Option<Self>>::read(r, path)?.ok_or_else(|| r.missing(path))
    }
}

/// It may be left out; an empty string counts as left out.
impl<T: FromRaw> Setting for Option<T> {
    fn read(r: &mut Reader<'_>, path: &str) -> Read<Self> {
        r.optional(path)
    }
}

impl Setting for SecretSource {
    fn read(r: &mut Reader<'_>, path: &str) -> Read<Self> {
        <Option<Self>>::read(r, path)?.ok_or_else(|| r.missing(path))
    }
}

impl Setting for Option<SecretSource> {
    fn read(r: &mut Reader<'_>, path: &str) -> Read<Self> {
        r.optional_secret(path)
    }
}

/// Reads keys out of a [`Tree`].
pub(super) struct Reader<'a> {
    pub(super) input: &'a LoadInput,
    tree: Tree,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Resolves `${…}` in what files gave. Values that a higher layer replaced are not looked at.
    pub(super) fn new(mut tree: Tree, mut problems: Vec<Problem>, input: &'a LoadInput) -> Self {
        for (path, entry) in tree.entries_mut() {
            if !matches!(entry.origin, Origin::File(_)) {
                continue;
            }
            if let Some(problem) = resolve(path, entry, &input.env) {
                problems.push(problem);
                entry.raw = Raw::Refused;
            }
        }
        Self {
            input,
            tree,
            problems,
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

    /// What is given for a key; for text, empty means unset. For a number or a switch it is an oversight.
    fn given(&self, path: &str) -> Option<(&'static Key, &Entry)> {
        let (key, entry) = (find(path)?, self.tree.get(path)?);
        let may_be_empty = matches!(
            &key.kind,
            Kind::Text | Kind::Url | Kind::Path | Kind::Address
        );
        let is_unset = may_be_empty && entry.raw == Raw::Text(String::new());
        (!is_unset).then_some((key, entry))
    }

    /// The value of a key that was read, or is about to be: no problem is recorded.
    pub(super) fn peek<T: FromRaw>(&self, path: &str) -> Read<Option<T>> {
        let value = self
            .given(path)
            .map(|(key, entry)| T::from_raw(&entry.raw, &key.kind));
        value.transpose().map_err(|_| Recorded)
    }

    fn optional<T: FromRaw>(&mut self, path: &str) -> Read<Option<T>> {
        let Some((key, entry)) = self.given(path) else {
            return Ok(None);
        };
        let entry = entry.clone();
        if entry.raw == Raw::Refused {
            return Err(Recorded);
        }
        let value = T::from_raw(&entry.raw, &key.kind)
            .map_err(|refusal| self.refuse(key, &entry, refusal))?;
        if key.kind == Kind::Path {
            self.must_be_readable(key, &entry)?;
        }
        Ok(Some(value))
    }

    /// A file must be readable when krane starts.
    fn must_be_readable(&mut self, key: &Key, entry: &Entry) -> Read<()> {
        let file = Path::new(entry.raw.as_text().unwrap_or_default());
        match std::fs::File::open(file) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = SecretError::Read(error.kind());
                Err(self.unusable_file(key.path, entry.origin.clone(), file, &error))
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
