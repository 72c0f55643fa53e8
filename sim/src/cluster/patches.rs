//! The ways in which somebody else changes an object.

use serde_json::{Map, Value};

use super::refusals::{self, Status};
use super::schema::{ListKind, Type, schema};

/// JSON merge patch (RFC 7386).
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(map) = target.as_object_mut() {
                map.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Strategic merge patch, without its directives: lists of named items are merged by name.
pub(super) fn strategic(of: &Type, target: &mut Value, patch: &Value) {
    match (of, patch) {
        (Type::Struct { .. } | Type::Map { .. }, Value::Object(patch)) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            for (key, value) in patch {
                if value.is_null() {
                    if let Some(map) = target.as_object_mut() {
                        map.remove(key);
                    }
                    continue;
                }
                match child(of, key) {
                    Some(of) => strategic(of, &mut target[key], value),
                    None => target[key] = value.clone(),
                }
            }
        }
        (
            Type::List {
                item,
                kind: ListKind::Keyed(keys),
            },
            Value::Array(patches),
        ) => {
            if !target.is_array() {
                *target = Value::Array(Vec::new());
            }
            let Some(items) = target.as_array_mut() else {
                return;
            };
            // Patches merge by the first key alone: a port's number, not its protocol.
            let key = keys
                .first()
                .map(|key| key.name.as_str())
                .unwrap_or_default();
            let mut added = Vec::new();
            for patch in patches {
                match items
                    .iter_mut()
                    .find(|known| known.get(key) == patch.get(key))
                {
                    Some(known) => strategic(item, known, patch),
                    None => added.push(patch.clone()),
                }
            }
            // New items come first, as the real server puts them.
            items.splice(0..0, added);
        }
        (_, patch) => *target = patch.clone(),
    }
}

fn child<'a>(of: &'a Type, key: &str) -> Option<&'a Type> {
    match of {
        Type::Struct { id, .. } => schema()
            .fields_of(*id)
            .fields
            .get(key)
            .map(|field| &field.of),
        Type::Map { item, .. } => Some(item),
        Type::String
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Quantity
        | Type::IntOrString
        | Type::Bytes
        | Type::Any
        | Type::List { .. } => None,
    }
}

/// JSON patch (RFC 6902): add, remove, replace and test.
pub(super) fn json(target: &mut Value, operations: &Value) -> Result<(), Status> {
    for operation in operations.as_array().into_iter().flatten() {
        let text = |key: &str| {
            operation
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let value = operation.get("value").cloned().unwrap_or_default();
        let path = text("path");
        let done = match text("op") {
            "test" => target.pointer(path) == Some(&value),
            "replace" => replace(target, path, value).is_some(),
            "add" => add(target, path, value).is_some(),
            "remove" => remove(target, path).is_some(),
            _ => false,
        };
        if !done {
            return Err(refusals::unprocessable());
        }
    }
    Ok(())
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) => {
            let index = if last == "-" {
                items.len()
            } else {
                last.parse().ok().filter(|index| *index <= items.len())?
            };
            items.insert(index, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

/// A field that is not there is added, as the real server does it.
fn replace(target: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, last) = split(path)?;
    if let Some(map) = target.pointer_mut(parent)?.as_object_mut() {
        map.insert(last, value);
    } else {
        *target.pointer_mut(path)? = value;
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(map) => map.remove(&last),
        Value::Array(items) => {
            let index = last.parse().ok().filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
