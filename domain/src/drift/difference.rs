//! One field that is not as wanted, and what may be shown of it.

use std::fmt;

use serde_json::Value;

use crate::canonical;
use crate::variables;

/// One field in which the live object is not what krane wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: keys joined by dots, `[name=x]` for keyed items, `[0]` for others, `["a.b"]` for keys
    /// with dots. Empty for the whole object.
    pub path: String,
    /// In which way.
    pub kind: DifferenceKind,
    /// The value krane wants; `None` when it may not be shown or is no scalar.
    pub wanted: Option<String>,
    /// The live value; `None` when it is absent, may not be shown or is no scalar.
    pub live: Option<String>,
    /// Hash of the live value, shown or not.
    pub(super) live_hash: u64,
}

/// In which way a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// Wanted, and krane does not own it.
    RenderedNotOwned,
    /// Owned by krane, and not wanted.
    OwnedNotRendered,
    /// Owned, with another value.
    Value,
    /// List items of krane in another order.
    Order,
}

impl DifferenceKind {
    /// Low-cardinality name for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RenderedNotOwned => "rendered_not_owned",
            Self::OwnedNotRendered => "owned_not_rendered",
            Self::Value => "value",
            Self::Order => "order",
        }
    }
}

impl Difference {
    pub(super) fn new(
        steps: &[Step<'_>],
        kind: DifferenceKind,
        wanted: Option<&Value>,
        live: Option<&Value>,
    ) -> Self {
        let show = |value: &Value| {
            if is_public(steps) {
                scalar(value)
            } else {
                None
            }
        };
        Self {
            path: path(steps),
            kind,
            wanted: wanted.and_then(show),
            live: live.and_then(show),
            live_hash: canonical::hash64(live.unwrap_or(&Value::Null)),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "the whole object"
        } else {
            &self.path
        };
        match self.kind {
            DifferenceKind::RenderedNotOwned => write!(f, "{path}: not owned by krane"),
            DifferenceKind::OwnedNotRendered => write!(f, "{path}: no longer wanted"),
            DifferenceKind::Order => write!(f, "{path}: in another order"),
            DifferenceKind::Value => match (&self.live, &self.wanted) {
                (Some(live), Some(wanted)) => write!(f, "{path}: {live} instead of {wanted}"),
                (None, Some(wanted)) => write!(f, "{path}: not {wanted}"),
                (Some(_) | None, None) => write!(f, "{path}: another value"),
            },
        }
    }
}

/// One step from an object to a field in it.
#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    /// Into an object.
    Key(&'a str),
    /// Into a keyed list, by the keys of the item.
    Item(String),
    /// Into any other list.
    Index(usize),
}

/// A path as text.
pub(super) fn path(steps: &[Step<'_>]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        Step::Key(key) => join(&path, key),
        Step::Item(keys) => format!("{path}[{keys}]"),
        Step::Index(index) => format!("{path}[{index}]"),
    })
}

/// A path and the key of an object at it.
pub(super) fn join(path: &str, key: &str) -> String {
    if key.contains(['.', '/', '[', ']', '"']) || key.is_empty() {
        format!("{path}[\"{key}\"]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Whether values at this place may be shown: no content of Secrets, and of variables only those
/// that krane itself makes in clear (D38).
fn is_public(steps: &[Step<'_>]) -> bool {
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        match step {
            Step::Key("data" | "stringData") => return false,
            Step::Key("env") => {
                let name = match steps.next() {
                    Some(Step::Item(keys)) => keys.strip_prefix("name=").unwrap_or_default(),
                    Some(Step::Key(_) | Step::Index(_)) | None => return false,
                };
                return variables::is_public(name);
            }
            Step::Key(_) | Step::Item(_) | Step::Index(_) => {}
        }
    }
    true
}

/// Longest value shown, in characters.
const SHOWN: usize = 120;

/// A scalar as short text. What is inside of lists and objects is not shown: it has no place that
/// could be judged.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let mut characters = text.chars();
            let start: String = characters.by_ref().take(SHOWN).collect();
            let more = if characters.next().is_some() {
                "…"
            } else {
                ""
            };
            Some(format!("\"{}{more}\"", start.escape_debug()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) => Some(format!("{} items", items.len())),
        Value::Object(_) => None,
    }
}
