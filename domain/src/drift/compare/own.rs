//! What krane owns of a live object, as it would have to apply it to leave it as it is.

use serde_json::{Map, Value};

use super::keyed::Name;
use super::own_fields;

/// The part of a live object at this path that krane owns by apply; `None` when it owns nothing
/// there.
pub(crate) fn own_part(live: &Value, api_version: &str, path: &[&str]) -> Option<Value> {
    let (mut fields, mut value) = (own_fields(live, api_version)?, live);
    for key in path {
        fields = fields.get(&format!("f:{key}"))?.as_object()?;
        value = value.get(key)?;
    }
    Some(part(fields, value))
}

fn part(fields: &Map<String, Value>, live: &Value) -> Value {
    if fields.keys().all(|name| name == ".") {
        return live.clone();
    }
    let of = |node: &Value, live: &Value| node.as_object().map(|fields| part(fields, live));
    match live {
        Value::Object(map) => {
            let own = map.iter().filter_map(|(key, value)| {
                Some((key.clone(), of(fields.get(&format!("f:{key}"))?, value)?))
            });
            Value::Object(own.collect())
        }
        Value::Array(items) => {
            let names: Vec<(Name, &Value)> = fields
                .iter()
                .filter_map(|(name, node)| Some((Name::parse(name)?, node)))
                .collect();
            let own = items.iter().filter_map(|item| {
                let (_, node) = names.iter().find(|(name, _)| name.is_name_of(item))?;
                of(node, item)
            });
            Value::Array(own.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => live.clone(),
    }
}
