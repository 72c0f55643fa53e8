//! Secrets that may live in a file and change while krane runs.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

/// A secret file longer than this (in bytes) is refused: it is not a secret.
const LONGEST_FILE: u64 = 64 * 1024;

/// A secret setting, either fixed or kept in a file that is re-read.
///
/// Cloning shares the source. Neither `Debug` nor any error shows the secret.
#[derive(Clone)]
pub struct SecretSource {
    source: Arc<Source>,
}

enum Source {
    Fixed(SecretString),
    File {
        path: PathBuf,
        last: Mutex<LastRead>,
    },
}

struct LastRead {
    /// The last good copy.
    secret: SecretString,
    /// What the last look found instead, if it found something else: a writer may be at it.
    found: Option<SecretString>,
    /// Why the file cannot be used, if it cannot: one failure is one log line.
    failure: Option<String>,
}

/// Why a secret could not be read. No variant holds the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Opening or reading the file failed.
    #[error("cannot be read: {}", super::layer::words(*.0))]
    Read(io::ErrorKind),
    /// The file is longer than a secret can be.
    #[error("is longer than {LONGEST_FILE} bytes")]
    TooLong,
    /// The file is not UTF-8.
    #[error("is not text")]
    NotText,
    /// There is nothing in it.
    #[error("is empty")]
    Empty,
    /// A line break or another character that no HTTP header can carry.
    #[error("holds a character that cannot travel in an HTTP header")]
    NotForHeader,
}

impl SecretSource {
    /// A secret that never changes. A line break at its end is dropped.
    #[must_use]
    pub fn fixed(secret: &str) -> Self {
        let secret = SecretString::from(without_line_end(secret));
        Self {
            source: Arc::new(Source::Fixed(secret)),
        }
    }

    /// A secret in a file; the file must be readable now.
    pub fn file(path: &Path) -> Result<Self, SecretError> {
        let last = LastRead {
            secret: read(path)?,
            found: None,
            failure: None,
        };
        let source = Source::File {
            path: path.to_owned(),
            last: Mutex::new(last),
        };
        Ok(Self {
            source: Arc::new(source),
        })
    }

    /// The secret as it is now.
    ///
    /// A file is read each time, because a rotation may keep its time stamp and its length. While
    /// it cannot be read, or is empty, the last good secret stays in use and one warning is logged.
    #[must_use]
    pub fn current(&self) -> SecretString {
        let (path, last) = match &*self.source {
            Source::Fixed(secret) => return secret.clone(),
            Source::File { path, last } => (path, last),
        };
        let content = read(path);
        let mut last = last.lock();
        match content {
            Ok(secret) => last.replace(secret, path),
            Err(error) => last.fail(&error, path),
        }
        last.secret.clone()
    }

    /// The last good copy, without a look at the file: for whoever must not wait for a disk.
    #[must_use]
    pub fn last_good(&self) -> SecretString {
        match &*self.source {
            Source::Fixed(secret) => secret.clone(),
            Source::File { last, .. } => last.lock().secret.clone(),
        }
    }

    /// Looks at the file. What differs from the last good copy replaces it once two looks in a row
    /// find the same: what is only half written is never in force. Returns whether another look is
    /// due soon.
    pub(super) fn refresh(&self) -> bool {
        let Source::File { path, last } = &*self.source else {
            return false;
        };
        let content = read(path);
        let mut last = last.lock();
        match content {
            Err(error) => {
                last.fail(&error, path);
                false
            }
            Ok(secret) => {
                let is = |other: &SecretString| other.expose_secret() == secret.expose_secret();
                let is_settled = is(&last.secret) || last.found.as_ref().is_some_and(is);
                if is_settled {
                    last.replace(secret, path);
                } else {
                    last.found = Some(secret);
                }
                !is_settled
            }
        }
    }

    /// Why its file could not be used at the last look, if it could not.
    pub(super) fn failure(&self) -> Option<String> {
        match &*self.source {
            Source::Fixed(_) => None,
            Source::File { last, .. } => last.lock().failure.clone(),
        }
    }

    /// The secret split at line breaks and commas, without empty parts.
    #[must_use]
    pub fn current_list(&self) -> Vec<SecretString> {
        let secret = self.current();
        let parts = secret.expose_secret().split(['\n', ',']).map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(SecretString::from)
            .collect()
    }

    /// The file the secret is read from, if it is in one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &*self.source {
            Source::Fixed(_) => None,
            Source::File { path, .. } => Some(path),
        }
    }

    /// Refuses what an `Authorization` header could not carry.
    pub(super) fn check_for_header(&self) -> Result<(), SecretError> {
        let secret = self.current();
        let fits = secret
            .expose_secret()
            .bytes()
            .all(|byte| (0x20..0x7f).contains(&byte));
        if fits {
            Ok(())
        } else {
            Err(SecretError::NotForHeader)
        }
    }
}

impl LastRead {
    fn replace(&mut self, secret: SecretString, path: &Path) {
        let is_new = secret.expose_secret() != self.secret.expose_secret();
        if is_new || self.failure.is_some() {
            tracing::info!(path = %path.display(), "secret file was re-read");
        }
        *self = Self {
            secret,
            found: None,
            failure: None,
        };
    }

    fn fail(&mut self, error: &SecretError, path: &Path) {
        self.found = None;
        if self.failure.replace(error.to_string()).is_none() {
            tracing::warn!(
                path = %path.display(), %error,
                "secret file cannot be used, the last good secret stays in use"
            );
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.source {
            Source::Fixed(_) => f.write_str("SecretSource(fixed)"),
            Source::File { path, .. } => write!(f, "SecretSource(file {})", path.display()),
        }
    }
}

fn read(path: &Path) -> Result<SecretString, SecretError> {
    let failed = |error: io::Error| SecretError::Read(error.kind());
    let mut bytes = zeroize::Zeroizing::new(Vec::new());
    File::open(path)
        .and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(SecretError::TooLong);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| SecretError::NotText)?;
    let secret = without_line_end(text);
    if secret.is_empty() {
        Err(SecretError::Empty)
    } else {
        Ok(SecretString::from(secret))
    }
}

/// Editors and `kubectl create secret --from-file` leave a line break nobody meant.
fn without_line_end(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}
