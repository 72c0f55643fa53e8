//! The configuration as it takes effect, for people: every key, its value, where it came from.

use std::fmt;

use super::keys::{FILE_SUFFIX, KEYS};
use super::problem::Problem;
use super::raw::Origin;
use super::tree::Tree;

/// Origins line up in this column, in characters, unless a value is longer.
const WIDEST: usize = 60;

/// An empty text in TOML.
const EMPTY: &str = "\"\"";

/// One line of the effective configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveValue {
    /// The TOML path, with `_file` when a secret is read from a file.
    pub path: String,
    /// The value in TOML form, masked if it is a secret; `None` when unset.
    pub shown: Option<String>,
    /// The layer that set it; `None` when no layer did.
    pub origin: Option<Origin>,
}

/// Every key in the order of `config/default.toml`. Its `Display` is valid TOML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective {
    /// One value per key.
    pub values: Vec<EffectiveValue>,
}

impl Effective {
    /// The winning value of every key, secrets masked.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut effective = Self::default();
        for key in KEYS {
            let file_path = format!("{}{FILE_SUFFIX}", key.path);
            let file = tree.get(&file_path).filter(|_| key.kind.is_secret());
            match (tree.get(key.path), file) {
                (_, Some(file)) if !file.raw.is_empty() => {
                    effective.push(&file_path, Some(file.raw.show()), Some(&file.origin));
                }
                // An empty text means "not set", and whoever set it so wants to see that it counts.
                (Some(entry), _) if entry.raw.is_empty() => {
                    effective.push(key.path, Some(EMPTY.to_owned()), Some(&entry.origin));
                }
                (Some(entry), _) if key.kind.is_secret() => {
                    effective.push(
                        key.path,
                        Some("\"********\"".to_owned()),
                        Some(&entry.origin),
                    );
                }
                (Some(entry), _) => {
                    effective.push(key.path, Some(entry.raw.show()), Some(&entry.origin));
                }
                (None, _) => effective.push(key.path, None, None),
            }
        }
        effective
    }

    /// Masks what is wrong: it may be a secret in the wrong place, and its problem says what it may.
    pub(super) fn without(mut self, problems: &[Problem]) -> Self {
        for value in &mut self.values {
            let is_wrong = problems
                .iter()
                .any(|problem| problem.key == value.path && problem.hides_value());
            if is_wrong && value.shown.as_deref().is_some_and(|shown| shown != EMPTY) {
                value.shown = Some("\"…\"".to_owned());
            }
        }
        self
    }

    fn push(&mut self, path: &str, shown: Option<String>, origin: Option<&Origin>) {
        self.values.push(EffectiveValue {
            path: path.to_owned(),
            shown,
            origin: origin.cloned(),
        });
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self
            .values
            .iter()
            .map(|value| (value.assignment(), value))
            .collect();
        let longest = lines.iter().map(|(line, _)| line.chars().count()).max();
        let widest = longest.unwrap_or_default().min(WIDEST);
        for (line, value) in lines {
            write!(f, "{line:widest$}  # ")?;
            match &value.origin {
                Some(origin) => writeln!(f, "{origin}")?,
                None => writeln!(f, "not set")?,
            }
        }
        Ok(())
    }
}

impl EffectiveValue {
    fn assignment(&self) -> String {
        match &self.shown {
            Some(shown) => format!("{} = {shown}", self.path),
            None => format!("# {}", self.path),
        }
    }
}
