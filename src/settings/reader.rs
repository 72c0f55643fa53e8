//! Turns merged values into typed ones and writes down everything that is wrong on the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::effective::Effective;
use super::keys::{FILE_SUFFIX, KEYS, Key, find, variable};
use super::kind::{FromRaw, Kind, Refusal};
use super::problem::{Problem, ProblemKind};
use super::raw::{Origin, Raw, show_text};
use super::secret::{SecretError, SecretSource};
use super::substitute::{SubstituteError, substitute};
use super::tree::{Entry, Tree};

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
            if let Err(error) = substitute_in(&mut entry.raw, env) {
                found.push(substitute_problem(path, entry, error));
                entry.raw = Raw::Refused;
            }
        }
        Self { tree, problems: found }
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
        self.tree.set(path, Raw::Text(text), Origin::Variable(name.to_owned()));
    }

    /// Whether any layer mentions the path, be it with an empty value.
    pub(super) fn mentions(&self, path: &str) -> bool {
        self.entry_of(path).is_some()
    }

    /// Whether the path, or for a secret its file form, has a value that is not empty.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.entry_of(path).is_some_and(|(_, entry)| !is_empty(&entry.raw))
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
        let unset = matches!(&key.kind, Kind::Text | Kind::Url | Kind::Path | Kind::Address);
        match &entry.raw {
            Raw::Refused => Err(Recorded),
            Raw::Text(text) if text.is_empty() && unset => Ok(None),
            raw => match T::from_raw(raw, &key.kind) {
                Ok(value) => Ok(Some(value)),
                Err(refusal) => {
                    let entry = entry.clone();
                    Err(self.refuse(key, &entry, refusal))
                }
            },
        }
    }

    /// A secret that must be there, given directly or by its file.
    pub(super) fn required_secret(&mut self, path: &str) -> Read<SecretSource> {
        match self.optional_secret(path)? {
            Some(secret) => Ok(secret),
            None => Err(self.missing(path)),
        }
    }

    /// A secret that may be left out.
    pub(super) fn optional_secret(&mut self, path: &str) -> Read<Option<SecretSource>> {
        let file_path = format!("{path}{FILE_SUFFIX}");
        let direct = self.tree.get(path).filter(|entry| !is_empty(&entry.raw)).cloned();
        let file = self.tree.get(&file_path).filter(|entry| !is_empty(&entry.raw)).cloned();
        let Some(key) = find(path) else {
            return Ok(None);
        };
        match (direct, file) {
            (None, None) => Ok(None),
            (Some(direct), Some(_)) => {
                let help = format!("remove {path} or {file_path}");
                Err(self.record(path, None, Some(direct.origin), ProblemKind::BothForms, help))
            }
            (Some(entry), None) => self.direct_secret(key, &entry).map(Some),
            (None, Some(entry)) => self.secret_file(key, &file_path, &entry).map(Some),
        }
    }

    fn direct_secret(&mut self, key: &Key, entry: &Entry) -> Read<SecretSource> {
        let text = match (&entry.raw, &key.kind) {
            (Raw::Refused, _) => return Err(Recorded),
            (Raw::Text(text), _) => text.clone(),
            (Raw::List(items), Kind::SecretList) if items.iter().all(is_text) => {
                let texts: Vec<_> = items.iter().filter_map(as_text).collect();
                texts.join("\n")
            }
            // A number is refused rather than turned into text: 00123 would have lost its zeros.
            (other, _) => {
                return Err(self.refuse(key, entry, Refusal::WrongType(other.type_name())));
            }
        };
        let secret = SecretSource::fixed(&text);
        match self.checked(key, secret) {
            Ok(secret) => Ok(secret),
            Err(error) => {
                let refusal = Refusal::Malformed(error.to_string());
                Err(self.refuse(key, entry, refusal))
            }
        }
    }

    fn secret_file(&mut self, key: &Key, file_path: &str, entry: &Entry) -> Read<SecretSource> {
        let path = match PathBuf::from_raw(&entry.raw, &Kind::Path) {
            _ if matches!(entry.raw, Raw::Refused) => return Err(Recorded),
            Ok(path) => path,
            Err(_) => {
                let expected = Kind::Path.describe();
                let kind = ProblemKind::WrongType { expected, found: entry.raw.type_name() };
                let help = format!("set {file_path} to a path, such as {}", key.example);
                let shown = Some(entry.raw.show());
                return Err(self.record(file_path, shown, Some(entry.origin.clone()), kind, help));
            }
        };
        let secret = SecretSource::file(&path).and_then(|secret| self.checked(key, secret));
        secret.map_err(|error| self.unusable_file(file_path, entry.origin.clone(), &path, &error))
    }

    #[expect(clippy::unused_self, reason = "keeps the two callers alike")]
    fn checked(&self, key: &Key, secret: SecretSource) -> Result<SecretSource, SecretError> {
        if key.kind == Kind::Token {
            secret.check_for_header()?;
        }
        Ok(secret)
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
        let path = file.display().to_string();
        let kind = ProblemKind::FileUnusable { path, reason: error.to_string() };
        let help = "check that the file is mounted, readable and not empty".to_owned();
        self.record(key, None, Some(origin), kind, help)
    }

    /// Records a problem with a path that has, or should have had, a value.
    pub(super) fn wrong(&mut self, path: &str, kind: ProblemKind, help: String) -> Recorded {
        let entry = self.entry_of(path).map(|(_, entry)| entry.clone());
        let secret = find(path).is_some_and(|key| key.kind.is_secret());
        let value = entry.as_ref().filter(|_| !secret).map(|entry| entry.raw.show());
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
                format!("set {path}{FILE_SUFFIX}, such as \"{}\", or {}", key.example, key.variable())
            }
            Some(key) => format!("set {path}, such as \"{}\", or {}", key.example, key.variable()),
            None => format!("set {path}"),
        };
        self.wrong(path, ProblemKind::Missing, help)
    }

    fn refuse(&mut self, key: &Key, entry: &Entry, refusal: Refusal) -> Recorded {
        let kind = match refusal {
            Refusal::WrongType(found) => {
                ProblemKind::WrongType { expected: key.kind.describe(), found }
            }
            Refusal::OutOfRange => ProblemKind::OutOfRange(key.kind.describe()),
            Refusal::Malformed(reason) => ProblemKind::Malformed(reason),
        };
        let (value, help) = if key.kind.is_secret() {
            let quotes = "give the secret as one quoted line without a line break";
            (None, format!("{quotes}, or its file in {}{FILE_SUFFIX}", key.path))
        } else {
            let help = format!("set {} to {}, such as {}", key.path, key.kind.describe(), key.example);
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
        self.problems.push(Problem { key: key.to_owned(), value, origin, kind, help });
        Recorded
    }

    fn entry_of(&self, path: &str) -> Option<(String, &Entry)> {
        let file_path = format!("{path}{FILE_SUFFIX}");
        let direct = self.tree.get(path).map(|entry| (path.to_owned(), entry));
        let file = self.tree.get(&file_path).map(|entry| (file_path, entry));
        match (direct, file) {
            (Some(direct), Some(file)) if is_empty(&direct.1.raw) => Some(file),
            (Some(direct), _) => Some(direct),
            (None, file) => file,
        }
    }
}

impl Effective {
    /// The winning value of every key, secrets masked.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut effective = Self::default();
        for key in KEYS {
            let file_path = format!("{}{FILE_SUFFIX}", key.path);
            let file = tree.get(&file_path).filter(|_| key.kind.is_secret());
            match (tree.get(key.path), file) {
                (_, Some(file)) if !is_empty(&file.raw) => {
                    effective.push(&file_path, Some(file.raw.show()), Some(&file.origin));
                }
                (Some(entry), _) if is_empty(&entry.raw) => {
                    effective.push(key.path, None, Some(&entry.origin));
                }
                (Some(entry), _) if key.kind.is_secret() => {
                    effective.push(key.path, Some("\"********\"".to_owned()), Some(&entry.origin));
                }
                (Some(entry), _) => {
                    effective.push(key.path, Some(entry.raw.show()), Some(&entry.origin));
                }
                (None, _) => effective.push(key.path, None, None),
            }
        }
        effective
    }
}

fn is_empty(raw: &Raw) -> bool {
    match raw {
        Raw::Text(text) => text.is_empty(),
        Raw::List(items) => items.is_empty(),
        _ => false,
    }
}

fn as_text(raw: &Raw) -> Option<&str> {
    if let Raw::Text(text) = raw { Some(text) } else { None }
}

fn is_text(raw: &Raw) -> bool {
    as_text(raw).is_some()
}

fn substitute_in(raw: &mut Raw, env: &BTreeMap<String, String>) -> Result<(), SubstituteError> {
    match raw {
        Raw::Text(text) => *text = substitute(text, env)?,
        Raw::List(items) => items.iter_mut().try_for_each(|item| substitute_in(item, env))?,
        Raw::Integer(_) | Raw::Float(_) | Raw::Boolean(_) | Raw::Table | Raw::Refused => {}
    }
    Ok(())
}

fn substitute_problem(path: &str, entry: &Entry, error: SubstituteError) -> Problem {
    let key = find(path);
    let secret = key.is_some_and(|key| key.kind.is_secret());
    let (kind, help) = match error {
        SubstituteError::Undefined(name) => {
            let help = format!("set {name}, or write ${{{name}:-default}}");
            (ProblemKind::UndefinedVariable(name), help)
        }
        // A secret that happens to look like a reference must not be repeated.
        SubstituteError::UndefinedBare(_) if secret => {
            let help = format!("write ${{NAME}}, or set {}", variable(path));
            (ProblemKind::UndefinedVariable("(name not shown)".to_owned()), help)
        }
        SubstituteError::UndefinedBare(name) => {
            (ProblemKind::UndefinedVariable(name.clone()), format!("set {name}"))
        }
        SubstituteError::Malformed => {
            (ProblemKind::BadReference, "write ${NAME}, or $${ for a literal ${".to_owned())
        }
    };
    let value = (!secret).then(|| entry.raw.show());
    Problem { key: path.to_owned(), value, origin: Some(entry.origin.clone()), kind, help }
}
