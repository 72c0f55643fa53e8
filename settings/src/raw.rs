//! Values before they are typed, and where they came from.

use std::fmt;
use std::path::PathBuf;

use config::{Value, ValueKind};

/// A value as a layer gave it.
///
/// It has no `Debug`: it may be a secret.
#[derive(Clone, PartialEq)]
pub(super) enum Raw {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    List(Vec<Self>),
    Table,
    /// A problem with this value was already recorded; nobody complains about it again.
    Refused,
}

impl Raw {
    /// What the value is called in a message.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a decimal number",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table => "a table",
            Self::Refused => "an unusable value",
        }
    }

    /// Whether the value is an empty string or list, which means "not set".
    pub(super) const fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Integer(_) | Self::Float(_) | Self::Boolean(_) | Self::Table | Self::Refused => {
                false
            }
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The value on one line, for messages and `--print`; never called for secrets.
    pub(super) fn show(&self) -> String {
        match self {
            Self::Text(text) => show_text(text),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::show).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Table => "{…}".to_owned(),
            Self::Refused => "…".to_owned(),
        }
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Raw {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Value> for Raw {
    fn from(value: Value) -> Self {
        match value.kind {
            ValueKind::Nil => Self::Text(String::new()),
            ValueKind::Boolean(value) => Self::Boolean(value),
            ValueKind::I64(number) => Self::Integer(number.into()),
            ValueKind::I128(number) => Self::Integer(number),
            ValueKind::U64(number) => Self::Integer(number.into()),
            ValueKind::U128(number) => Self::Integer(i128::try_from(number).unwrap_or(i128::MAX)),
            ValueKind::Float(number) => Self::Float(number),
            ValueKind::String(text) => Self::Text(text),
            ValueKind::Table(_) => Self::Table,
            ValueKind::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
        }
    }
}

/// Quotes a text for one line of output. Credentials in a URL are left out: people put them
/// there, and the message that refuses them must not repeat them.
pub(super) fn show_text(text: &str) -> String {
    const LONGEST: usize = 160;
    let mut text = without_credentials(text);
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST).chain(['…']).collect();
    }
    // JSON's escapes are also TOML's.
    serde_json::Value::String(text).to_string()
}

fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let mut shown = match rest.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => rest.to_owned(),
    };
    let Some(scheme) = scheme else {
        return shown;
    };
    if let Some(query) = shown.find(['?', '#']) {
        shown.replace_range(query.., "?…");
    }
    format!("{scheme}://{shown}")
}

/// The layer and the place in it that gave a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `config/default.toml`, built into the binary.
    Default,
    /// Made up at start.
    Generated,
    /// A file given with `--config` or `UNKEY_CONFIG`.
    File(PathBuf),
    /// An environment variable, by its name.
    Variable(String),
    /// A flag, as typed.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("built-in default"),
            Self::Generated => f.write_str("generated at start"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}
