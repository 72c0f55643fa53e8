//! The configuration as it takes effect, for people: every key, its value, where it came from.

use std::fmt;

use super::raw::Origin;

/// Origins line up in this column, in characters, unless a value is longer.
const WIDEST: usize = 60;

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
    pub(super) fn push(&mut self, path: &str, shown: Option<String>, origin: Option<&Origin>) {
        self.values.push(EffectiveValue {
            path: path.to_owned(),
            shown,
            origin: origin.cloned(),
        });
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.values.iter().map(|value| (value.assignment(), value)).collect();
        let longest = lines.iter().map(|(line, _)| line.chars().count()).max();
        let widest = longest.unwrap_or_default().min(WIDEST);
        for (line, value) in lines {
            let origin = value.origin.as_ref().map_or("not set".to_owned(), Origin::to_string);
            writeln!(f, "{line:widest$}  # {origin}")?;
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
