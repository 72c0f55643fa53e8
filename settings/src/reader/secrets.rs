//! Secrets, given directly or by their files.

use std::path::{Component, Path, PathBuf};

use super::super::keys::{FILE_SUFFIX, Key, find};
use super::super::kind::{FromRaw, Kind};
use super::super::problem::{HIDDEN_FILE, ProblemKind};
use super::super::raw::Raw;
use super::super::secret::{SecretError, SecretSource};
use super::super::tree::Entry;
use super::super::types::Refusal;
use super::{Read, Reader, Recorded};

impl Reader<'_> {
    /// A secret that may be left out.
    pub(super) fn optional_secret(&mut self, path: &str) -> Read<Option<SecretSource>> {
        let file_path = format!("{path}{FILE_SUFFIX}");
        let direct = self
            .tree
            .get(path)
            .filter(|entry| !entry.raw.is_empty())
            .cloned();
        let file = self
            .tree
            .get(&file_path)
            .filter(|entry| !entry.raw.is_empty())
            .cloned();
        let Some(key) = find(path) else {
            return Ok(None);
        };
        match (direct, file) {
            (None, None) => Ok(None),
            (Some(direct), Some(_)) => {
                let help = format!("remove {path} or {file_path}");
                Err(self.record(
                    path,
                    None,
                    Some(direct.origin),
                    ProblemKind::BothForms,
                    help,
                ))
            }
            (Some(entry), None) => self.direct_secret(key, &entry).map(Some),
            (None, Some(entry)) => self.secret_file(key, &file_path, &entry).map(Some),
        }
    }

    fn direct_secret(&mut self, key: &Key, entry: &Entry) -> Read<SecretSource> {
        let text = match (&entry.raw, &key.kind) {
            (Raw::Refused, _) => return Err(Recorded),
            (Raw::Text(text), _) => text.clone(),
            (Raw::List(items), Kind::SecretList)
                if items.iter().all(|item| item.as_text().is_some()) =>
            {
                let texts: Vec<_> = items.iter().filter_map(Raw::as_text).collect();
                texts.join("\n")
            }
            // A number is refused rather than turned into text: 00123 would have lost its zeros.
            (other, _) => {
                return Err(self.refuse(key, entry, Refusal::WrongType(other.type_name())));
            }
        };
        let secret = SecretSource::fixed(&text);
        match checked(key, secret) {
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
                let kind = ProblemKind::WrongType {
                    expected,
                    found: entry.raw.type_name(),
                };
                let help = format!("set {file_path} to a path, such as {}", key.example);
                return Err(self.record(file_path, None, Some(entry.origin.clone()), kind, help));
            }
        };
        let secret = SecretSource::file(&path).and_then(|secret| checked(key, secret));
        secret.map_err(|error| {
            let origin = entry.origin.clone();
            if may_be_a_secret(&path) {
                self.unusable(file_path, origin, HIDDEN_FILE.to_owned(), &error)
            } else {
                self.unusable_file(file_path, origin, &path, &error)
            }
        })
    }
}

/// Whether this may be a secret in the wrong place. Tokens are made of words and have slashes, too:
/// only `./`, `../` or a first folder that is there make it a path, such as /var of a Secret that is not
/// mounted. The root is always there.
fn may_be_a_secret(path: &Path) -> bool {
    let mut parts = path.components();
    let is_relative = matches!(
        (parts.next(), parts.next()),
        (Some(Component::CurDir | Component::ParentDir), Some(_))
    );
    let folders = path.parent().into_iter().flat_map(Path::ancestors);
    let named = folders.filter(|folder| folder.file_name().is_some());
    let begins_with_a_folder = || named.last().is_some_and(Path::is_dir);
    !is_relative && !begins_with_a_folder()
}

fn checked(key: &Key, secret: SecretSource) -> Result<SecretSource, SecretError> {
    if key.kind == Kind::Token {
        secret.check_for_header()?;
    }
    Ok(secret)
}
