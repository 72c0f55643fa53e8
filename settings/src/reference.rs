//! The keys as documentation and as a schema.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::keys::{FILE_SUFFIX, KEYS, Key};
use super::kind::Kind;

/// Keys, or all below a section, that other values of the chart set, or a Secret.
const OTHER_VALUES_OF_THE_CHART: &[&str] = &[
    "instance_id",
    "rpc_port",
    "control.url",
    "control.token",
    "control.ca_file",
    "registry",
    "vault",
    "scheduler",
    "rpc.tls",
    "lease",
    "health",
    "admin",
    "observability.metrics",
];
/// A reference to a variable, which may stand for a value of any type.
const REFERENCE: &str = "\\$\\{.+\\}";

/// A table of every key in Markdown.
pub fn markdown() -> String {
    let mut text = "| key | accepts | default | also | what |\n|---|---|---|---|---|\n".to_owned();
    for key in KEYS {
        let default = match default_of(key) {
            _ if key.is_required => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let mut also = Vec::new();
        if key.kind.is_secret() {
            also.push(format!("`{}{FILE_SUFFIX}`", key.path));
        }
        also.push(format!("`{}`", key.variable()));
        also.extend(key.flat.map(|flat| format!("`{flat}`")));
        also.extend(key.flag.map(|flag| format!("`{flag}`")));
        let secret = if key.kind.is_secret() { "; secret" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {}{secret} | {default} | {} | {} |",
            key.path,
            key.kind.describe(),
            also.join(" "),
            key.description().replace('|', "\\|"),
        );
    }
    text
}

/// A JSON schema (draft 7) of a whole configuration.
pub fn json_schema() -> Value {
    let mut root = section();
    for key in KEYS {
        let plain = schema(&key.kind);
        let is_any_text = plain == json!({"type": "string"});
        let mut schema = if is_any_text {
            plain
        } else {
            json!({"anyOf": [plain, {"type": "string", "pattern": REFERENCE}]})
        };
        schema["description"] = key.description().into();
        if let Some(default) = default_of(key) {
            schema["default"] = default;
        }
        if key.kind.is_secret() {
            let file = json!({
                "type": "string",
                "description": format!("The file that holds {}.", key.path),
            });
            put(&mut root, &format!("{}{FILE_SUFFIX}", key.path), file);
        } else {
            schema["examples"] = json!([key.example]);
        }
        put(&mut root, key.path, schema);
    }
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    root["title"] = "Configuration of krane".into();
    root
}

/// The part `config` of the chart's `values.schema.json`: every key that no other value sets.
pub fn chart_schema() -> Value {
    let mut root = section();
    let is_settable = |key: &&Key| {
        let is_within = |other: &&str| {
            let rest = key.path.strip_prefix(*other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !OTHER_VALUES_OF_THE_CHART.iter().any(is_within)
    };
    for key in KEYS.iter().filter(is_settable) {
        let schema = if key.kind == Kind::Text && key.default != Some("") {
            json!({"type": "string", "minLength": 1})
        } else if key.kind == Kind::Url {
            json!({"$ref": "#/definitions/url"})
        } else if let Kind::Duration { zero, .. } = key.kind {
            let duration = json!({"$ref": "#/definitions/duration"});
            if zero {
                json!({"anyOf": [duration, {"const": "0"}]})
            } else {
                duration
            }
        } else {
            schema(&key.kind)
        };
        put(&mut root, key.path, schema);
    }
    root["description"] =
        "Keys of config/default.toml that no other value of the chart sets.".into();
    root
}

fn section() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn schema(kind: &Kind) -> Value {
    match kind {
        Kind::Text | Kind::Address | Kind::Path | Kind::Token | Kind::Secret => {
            json!({"type": "string"})
        }
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Fraction => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Duration { zero, .. } => {
            let text = json!({"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"});
            if *zero {
                json!({"anyOf": [text, {"const": "0"}, {"const": 0}]})
            } else {
                text
            }
        }
        Kind::Bytes { .. } => {
            json!({"type": "string", "pattern": "^[0-9]+ ?(B|[KMG]iB?|[KMG]B?|k)?$"})
        }
        Kind::Url => json!({"type": "string", "pattern": "^https?://[^\\s?#@]+$"}),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::SecretList => json!({"type": "array", "items": {"type": "string"}}),
    }
}

/// Puts a schema at a path, with the sections on the way.
fn put(root: &mut Value, path: &str, schema: Value) {
    let mut at = root;
    let mut rest = path;
    while let Some((head, tail)) = rest.split_once('.') {
        let properties = &mut at["properties"];
        if properties[head].is_null() {
            properties[head] = section();
        }
        at = &mut properties[head];
        rest = tail;
    }
    at["properties"][rest] = schema;
}

/// The default as JSON, which is also its TOML.
fn default_of(key: &Key) -> Option<Value> {
    let text = key.default?;
    let is_bare = matches!(
        key.kind,
        Kind::Integer { .. } | Kind::Fraction | Kind::Boolean
    );
    // A whole fraction is shown without its point: 1, not 1.0.
    let bare = text.trim_end_matches(".0").parse().ok();
    bare.filter(|_| is_bare).or_else(|| Some(text.into()))
}
