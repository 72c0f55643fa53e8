//! From a value as somebody wrote it to the value that is stored: zeros that are not kept are
//! dropped, amounts are spelled in one way, unknown fields are forgotten.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::quantity;
use super::schema::{Presence, Type, schema};

/// What cannot be stored, as a real API server says it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inconvertible(pub(super) String);

/// The stored form. Values of custom kinds keep their zeros.
pub(super) fn normal(of: &Type, value: Value, is_custom: bool) -> Result<Value, Inconvertible> {
    let normal = Normal {
        is_custom,
        has_nulls: false,
    };
    normal.value(of, value)
}

/// What an object looks like before anything was written to it.
pub(super) fn unwritten(of: &Type) -> Value {
    let normal = Normal {
        is_custom: false,
        has_nulls: true,
    };
    normal.value(of, json!({})).unwrap_or_default()
}

struct Normal {
    is_custom: bool,
    has_nulls: bool,
}

impl Normal {
    fn value(&self, of: &Type, value: Value) -> Result<Value, Inconvertible> {
        match (of, value) {
            (Type::Struct { id, .. }, Value::Object(map)) => self.fields(*id, map),
            (Type::Map { item, .. }, Value::Object(map)) => {
                let entries = map.into_iter().map(|(key, value)| {
                    let value = match (&**item, value) {
                        // An entry of a map of texts that is null is an empty text.
                        (Type::String, Value::Null) => json!(""),
                        (of, value) => self.value(of, value)?,
                    };
                    Ok((key, value))
                });
                Ok(Value::Object(entries.collect::<Result<_, _>>()?))
            }
            (Type::List { item, .. }, Value::Array(items)) => {
                let items = items.into_iter().map(|value| self.value(item, value));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            (Type::Quantity, value) => quantity(&value, true),
            (Type::Bytes, Value::String(text)) => match STANDARD.decode(&text) {
                Ok(_) => Ok(Value::String(text)),
                Err(_) => Err(Inconvertible(
                    "illegal base64 data at input byte 0".to_owned(),
                )),
            },
            (Type::Integer, Value::Number(number)) => Ok(whole(&number)),
            (_, value) => Ok(value),
        }
    }

    fn fields(&self, id: usize, mut map: Map<String, Value>) -> Result<Value, Inconvertible> {
        let mut kept = Map::new();
        for (name, field) in &schema().fields_of(id).fields {
            let value = match map.remove(name) {
                None | Some(Value::Null) if field.presence == Presence::Always => json!({}),
                None | Some(Value::Null) => match &field.default {
                    Some(default) if self.is_custom => default.clone(),
                    _ if self.has_nulls && field.presence == Presence::Null => {
                        kept.insert(name.clone(), Value::Null);
                        continue;
                    }
                    _ => continue,
                },
                Some(value) => value,
            };
            // The metadata of custom kinds is that of all kinds.
            let metadata = Self {
                is_custom: false,
                ..*self
            };
            let inner = if name == "metadata" { &metadata } else { self };
            let value = inner.value(&field.of, value)?;
            if field.presence == Presence::Omitted && !self.is_custom && is_zero(&value) {
                continue;
            }
            kept.insert(name.clone(), value);
        }
        Ok(Value::Object(kept))
    }
}

fn quantity(value: &Value, is_resource: bool) -> Result<Value, Inconvertible> {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    quantity::canonical(&text, is_resource)
        .map(Value::from)
        .ok_or_else(|| {
            Inconvertible(
                "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .to_owned(),
            )
        })
}

/// `8090.0` is `8090`.
fn whole(number: &serde_json::Number) -> Value {
    match number.as_f64() {
        Some(float) if number.as_i64().is_none() && float.fract() == 0.0 => {
            #[allow(clippy::cast_possible_truncation, reason = "whole, and far below 2^53")]
            let whole = float as i64;
            json!(whole)
        }
        _ => Value::Number(number.clone()),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
