//! Whether a value is of its type; the texts are those of a real API server.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::{Children, ListKind, Naming, Type};

/// A value that is not of its type.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cluster) struct Problem {
    path: String,
    text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.text),
            path => write!(f, "{path}: {}", self.text),
        }
    }
}

/// Everything in the value that is not of its type.
pub(in crate::cluster) fn check(of: &Type, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(of, value, "", &mut problems);
    problems
}

fn walk(of: &Type, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut refuse = |text: String| {
        problems.push(Problem {
            path: path.to_owned(),
            text,
        });
    };
    if value.is_null() {
        return;
    }
    match of {
        Type::String | Type::Bytes if !value.is_string() => {
            refuse(format!("expected string, got {}", go_value(value)));
        }
        Type::Boolean if !value.is_boolean() => {
            refuse(format!("expected boolean, got {}", shown(value)));
        }
        Type::Integer | Type::Number if !value.is_number() => refuse(format!(
            "expected numeric (int or float), got {}",
            go_type(value)
        )),
        Type::Quantity | Type::IntOrString if value.is_object() || value.is_array() => {
            refuse(format!("expected any scalar, got {}", shown(value)));
        }
        Type::Struct { id, .. } => match value.as_object() {
            Some(map) => object(Children::Struct(*id), map, path, problems),
            None => refuse(format!("expected map, got {}", shown(value))),
        },
        Type::Map { item, .. } => match value.as_object() {
            Some(map) => object(Children::Map(item), map, path, problems),
            None => refuse(format!("expected map, got {}", shown(value))),
        },
        Type::List { item, kind } => match value.as_array() {
            Some(items) => list(item, kind, items, path, problems),
            None => refuse(format!("expected list, got {}", shown(value))),
        },
        Type::String
        | Type::Bytes
        | Type::Boolean
        | Type::Integer
        | Type::Number
        | Type::Quantity
        | Type::IntOrString
        | Type::Any => {}
    }
}

fn object(
    children: Children<'_>,
    map: &serde_json::Map<String, Value>,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in map {
        let path = format!("{path}.{name}");
        let Some(of) = children.of(name).0 else {
            problems.push(Problem {
                path,
                text: "field not declared in schema".to_owned(),
            });
            // The server stops here, too.
            return;
        };
        walk(of, value, &path, problems);
    }
}

fn list(of: &Type, kind: &ListKind, items: &[Value], path: &str, problems: &mut Vec<Problem>) {
    let naming = match kind {
        ListKind::Atomic => None,
        ListKind::Set => Some(Naming::Value),
        ListKind::Keyed(keys) => Some(Naming::Keys(keys)),
    };
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(naming) = naming else {
            walk(of, item, &format!("{path}[{index}]"), problems);
            continue;
        };
        let Some(step) = naming.step(item) else {
            problems.push(Problem {
                path: path.to_owned(),
                text: format!("element {index}: {}", unnamed(naming, item)),
            });
            return;
        };
        let name = bracketed(&step);
        if !seen.insert(step) {
            problems.push(Problem {
                path: path.to_owned(),
                text: format!("duplicate entries for key {name}"),
            });
        }
        walk(of, item, &format!("{path}{name}"), problems);
    }
}

fn unnamed(naming: Naming<'_>, item: &Value) -> String {
    match naming {
        Naming::Keys(_) if item.is_null() => {
            "associative list with keys may not have a null element".to_owned()
        }
        Naming::Keys(_) if !item.is_object() => {
            "associative list with keys may not have non-map elements".to_owned()
        }
        Naming::Keys(keys) => {
            let keys: Vec<String> = keys.iter().map(|key| format!("\"{}\"", key.name)).collect();
            format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                keys.join(" ")
            )
        }
        Naming::Value => {
            "associative list without keys has an element that's a map type".to_owned()
        }
    }
}

/// `k:{"name":"x"}` as messages have it: `[name="x"]`.
fn bracketed(step: &str) -> String {
    if let Some(value) = step.strip_prefix("v:") {
        return format!("[={value}]");
    }
    let keys = step.strip_prefix("k:").unwrap_or(step);
    let keys: serde_json::Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let keys: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!("[{}]", keys.join(","))
}

fn go_value(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{value}}}")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("&{{{text}}}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("&{{{value}}}")
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
