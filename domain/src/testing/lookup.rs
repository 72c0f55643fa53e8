//! Finding a field by the path notation of differences.

use serde_json::Value;

/// The value at a path like `spec.containers[name=x].env[0]` or `metadata.labels["a.b/c"]`.
pub fn lookup<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(bracket) = rest.strip_prefix('[') {
            if let Some(quoted) = bracket.strip_prefix('"') {
                let (key, after) = quoted.split_once("\"]")?;
                (value, rest) = (value.get(key)?, after);
            } else {
                let (item, after) = bracket.split_once(']')?;
                (value, rest) = (self::item(value, item)?, after);
            }
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            (value, rest) = (value.get(key)?, after);
        }
    }
    Some(value)
}

fn item<'a>(list: &'a Value, item: &str) -> Option<&'a Value> {
    if let Ok(index) = item.parse::<usize>() {
        return list.get(index);
    }
    let has = |value: &Value, key: &str, wanted: &str| match value.get(key) {
        Some(Value::String(text)) => text == wanted,
        Some(other) => serde_json::to_string(other).is_ok_and(|text| text == wanted),
        None => key == "protocol" && wanted == "TCP",
    };
    list.as_array()?.iter().find(|value| {
        item.split(',')
            .all(|pair| pair.split_once('=').is_some_and(|(k, v)| has(value, k, v)))
    })
}
