//! The keys as documentation and as a schema. Names, values and defaults come from the list of keys,
//! the sentences from the comments of `config/default.toml`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::effective::Effective;
use super::keys::{FILE_SUFFIX, KEYS, Key};
use super::kind::Kind;
use super::layer::DEFAULT_TOML;

/// Keys that no layer may leave out.
const REQUIRED: &[&str] = &["region", "control.url", "control.token"];
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
    let defaults = Effective::of_defaults();
    for key in KEYS {
        let default = match defaults.value_of(key.path) {
            _ if REQUIRED.contains(&key.path) => "required".to_owned(),
            Some(value) => value
                .shown
                .as_deref()
                .map_or_else(String::new, |shown| format!("`{shown}`")),
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
            description(key).replace('|', "\\|"),
        );
    }
    text
}

/// A JSON schema (draft 7) of a whole configuration.
pub fn json_schema() -> Value {
    let defaults = Effective::of_defaults();
    let mut root = section();
    for key in KEYS {
        let plain = schema(&key.kind);
        let is_any_text = plain == json!({"type": "string"});
        let mut schema = if is_any_text {
            plain
        } else {
            json!({"anyOf": [plain, {"type": "string", "pattern": REFERENCE}]})
        };
        schema["description"] = description(key).into();
        let default = defaults.value_of(key.path);
        if let Some(shown) = default.and_then(|value| value.shown.as_deref()) {
            schema["default"] = toml_value(shown);
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
    let defaults = Effective::of_defaults();
    let mut root = section();
    let is_settable = |key: &&Key| {
        let is_within = |other: &&str| {
            let rest = key.path.strip_prefix(*other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !OTHER_VALUES_OF_THE_CHART.iter().any(is_within)
    };
    for key in KEYS.iter().filter(is_settable) {
        let default = defaults.value_of(key.path);
        let may_be_empty = default.is_some_and(|value| value.shown.as_deref() == Some("\"\""));
        let schema = if key.kind == Kind::Text && !may_be_empty {
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

/// What `check-config --print` shows, as JSON.
fn toml_value(shown: &str) -> Value {
    let table = format!("value = {shown}").parse::<toml::Table>();
    let value = table.ok().and_then(|mut table| table.remove("value"));
    value
        .and_then(|value| serde_json::to_value(value).ok())
        .unwrap_or_default()
}

/// The comment above the key in `config/default.toml`; above its section, if it has none.
fn description(key: &Key) -> String {
    let (mut section, mut of_section) = (String::new(), String::new());
    let mut comment = String::new();
    for line in DEFAULT_TOML.lines() {
        let bare = line.strip_prefix('#').map_or(line, str::trim_start);
        if bare.is_empty() {
            comment.clear();
        } else if let Some(name) = header(bare) {
            name.clone_into(&mut section);
            of_section = std::mem::take(&mut comment);
        } else if let Some(name) = assigned(bare) {
            let dot = if section.is_empty() { "" } else { "." };
            let path = format!("{section}{dot}{name}");
            if path == key.path || path.strip_suffix(FILE_SUFFIX) == Some(key.path) {
                return if comment.is_empty() {
                    of_section
                } else {
                    comment
                };
            }
        } else if line.starts_with('#') {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(bare);
        }
    }
    String::new()
}

fn header(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

fn assigned(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(" = ")?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_sentence() {
        for key in KEYS {
            let text = description(key);
            assert!(text.len() > 10, "{}: {text:?}", key.path);
            assert!(!text.contains(" = "), "{}: {text}", key.path);
        }
        let retry = KEYS.iter().find(|key| key.path == "lease.retry");
        assert_eq!(
            description(retry.unwrap()),
            "The time between two attempts, 100ms to 1h; less than `renew`."
        );
    }

    #[test]
    fn the_schema_has_every_key_and_every_file_of_a_secret() {
        let schema = json_schema();
        for key in KEYS {
            let at = |path: &str| {
                let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
                schema.pointer(&pointer).cloned()
            };
            assert!(at(key.path).is_some(), "{}", key.path);
            let file = at(&format!("{}{FILE_SUFFIX}", key.path));
            assert_eq!(file.is_some(), key.kind.is_secret(), "{}", key.path);
        }
        assert_eq!(
            schema.pointer("/properties/control/additionalProperties"),
            Some(&json!(false))
        );
        // A file may say `${CONTROL_URL}` for any of them.
        for path in [
            "control/properties/url",
            "rpc_port",
            "control/properties/max_backlog",
        ] {
            let any = schema.pointer(&format!("/properties/{path}/anyOf/1/pattern"));
            assert_eq!(any, Some(&json!(REFERENCE)), "{path}");
        }
        let port = schema.pointer("/properties/rpc_port/default");
        assert_eq!(port, Some(&json!(8070)));
    }

    #[test]
    fn the_chart_accepts_what_the_binary_does() {
        let file = include_str!("../../charts/krane/values.schema.json");
        let file: Value = serde_json::from_str(file).unwrap();
        let expected = chart_schema();
        assert_eq!(
            file["properties"]["config"], expected,
            "put the output of `krane config schema --chart` there:\n{expected:#}"
        );
    }

    #[test]
    fn the_page_about_the_configuration_has_this_table() {
        let page = include_str!("../../docs/configuration.md");
        let (_, rest) = page.split_once("<!-- keys -->\n").unwrap();
        let (table, _) = rest.split_once("<!-- end of keys -->").unwrap();
        assert_eq!(
            table.trim(),
            markdown().trim(),
            "put the output of `krane config docs` between the marks"
        );
    }
}
