//! What is made from the table and committed. `BLESS=1 cargo test -p krane-settings generated` writes it.

use std::path::Path;

use serde_json::{Value, json};

use super::super::Kind;
use super::super::keys::{FILE_SUFFIX, KEYS, Key, SECTIONS, Section};
use super::super::reference::{chart_schema, json_schema, markdown};

const HEAD: &str = "\
# Every key of krane with its default. This file is built into the binary as the lowest layer;
# copy the lines you want to change into a file of your own and name it with `--config`.
#
# A higher layer wins over a lower one:
#   this file < `--config` files in their order (or the one in UNKEY_CONFIG)
#             < flat UNKEY_* variables < KRANE__SECTION__KEY < flags
#
# `control.url` is also KRANE__CONTROL__URL. In a string, `${NAME}` is replaced by a variable and
# `${NAME:-text}` by the text when the variable is unset or empty; `$${` is a literal `${`.
# A secret is better kept in a file: `token_file = \"/path\"` is read again while krane runs.
# Lines that start with `# key =` have no default. An empty string means \"not set\".
# `or UNKEY_…` behind a key is its flat variable.
#
# `krane check-config --print` shows what takes effect and where each value comes from.
";

/// Compares a committed file with what it should be, or writes it.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "whether to write is no setting of krane"
)]
fn check(file: &str, is_equal: impl Fn(&str) -> bool, expected: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    if is_equal(&text) {
        return;
    }
    let expected = expected(&text);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    let differs = expected
        .lines()
        .zip(text.lines())
        .find(|(one, other)| one != other);
    panic!("{file} is not what the table makes; BLESS=1 writes it. First line: {differs:?}");
}

/// The text with everything between two marks replaced.
fn replaced(text: &str, begin: &str, end: &str, new: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{begin}{new}{end}{after}")
}

#[test]
fn the_default_file_is_what_the_table_makes() {
    let expected = default_toml();
    check(
        "config/default.toml",
        |text| text == expected,
        |_| expected.clone(),
    );
}

#[test]
fn the_page_about_the_configuration_has_the_table() {
    let page = |text: &str| {
        let marks = ("<!-- keys -->\n", "<!-- end of keys -->");
        replaced(text, marks.0, marks.1, &markdown())
    };
    check("docs/configuration.md", |text| page(text) == text, page);
}

#[test]
fn the_chart_accepts_what_the_binary_does() {
    let is_equal = |text: &str| {
        let schema: Value = serde_json::from_str(text).unwrap();
        schema["properties"]["config"] == chart_schema()
    };
    let expected = |text: &str| {
        let inner = format!("{:#}", chart_schema()).replace('\n', "\n    ");
        replaced(text, "\n    \"config\": ", ",\n    \"existing", &inner)
    };
    check("charts/krane/values.schema.json", is_equal, expected);
}

/// `config/default.toml`. TOML wants the keys of a section before the sections inside it.
fn default_toml() -> String {
    let mut lines: Vec<String> = HEAD.lines().map(str::to_owned).collect();
    let mut left: Vec<_> = SECTIONS.iter().collect();
    while !left.is_empty() {
        let is_inner = |inner: &Section| {
            let outer = inner.path.rsplit_once('.').map(|(outer, _)| outer);
            left.iter().any(|section| Some(section.path) == outer)
        };
        let next = left.iter().position(|section| !is_inner(section));
        write_section(&mut lines, left.remove(next.unwrap()));
    }
    lines.join("\n") + "\n"
}

fn keys_of(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter()
        .filter(move |key| key.section_and_name().0 == section)
}

/// A section whose keys all have no default is a comment as a whole.
fn is_comment(section: &str) -> bool {
    keys_of(section).count() > 0 && keys_of(section).all(|key| key.default.is_none())
}

fn write_section(lines: &mut Vec<String>, section: &Section) {
    let comments = |doc: &[&str]| {
        doc.iter()
            .map(|line| format!("#{line}"))
            .collect::<Vec<_>>()
    };
    let mark = |is_comment: bool| if is_comment { "#" } else { "" }.to_owned();
    let mut is_first = true;
    for key in keys_of(section.path) {
        if is_first && !section.path.is_empty() {
            let outer = section.path.rsplit_once('.');
            lines.push(mark(outer.is_some_and(|(outer, _)| is_comment(outer))));
            lines.extend(comments(section.doc));
            let off = if is_comment(section.path) { "# " } else { "" };
            lines.push(format!("{off}[{}]", section.path));
        } else if !key.doc.is_empty() {
            lines.push(mark(is_comment(section.path)));
        }
        is_first = false;
        lines.extend(comments(key.doc));
        lines.extend(assignments(key));
    }
}

/// The line that sets a key, and the one that names the file of a secret.
fn assignments(key: &Key) -> Vec<String> {
    let (_, name) = key.section_and_name();
    let flat = key.flat.map(|flat| format!("or {flat}"));
    let notes = key.note.map(str::to_owned).into_iter().chain(flat);
    let notes = notes.collect::<Vec<_>>().join("; ");
    let note = if notes.is_empty() {
        notes
    } else {
        format!("   # {notes}")
    };
    let is_bare = matches!(
        key.kind,
        Kind::Integer { .. } | Kind::Fraction | Kind::Boolean
    );
    let toml = |text: &str| {
        if is_bare {
            text.to_owned()
        } else {
            format!("\"{text}\"")
        }
    };
    let file = format!("# {name}{FILE_SUFFIX} = \"{}\"", key.sample);
    match key.default {
        Some(default) if key.kind.is_secret() => {
            vec![format!("{name} = {}{note}", toml(default)), file]
        }
        Some(default) => vec![format!("{name} = {}{note}", toml(default))],
        None if key.kind == Kind::SecretList => {
            vec![format!("# {name} = [\"…\", \"…\"]{note}")]
        }
        None if key.kind.is_secret() => vec![format!("{file}{note}")],
        None => vec![format!("# {name} = {}{note}", toml(key.sample))],
    }
}

#[test]
fn every_key_has_a_sentence_and_an_example() {
    for key in KEYS {
        let text = key.description();
        assert!(text.len() > 10, "{}: {text:?}", key.path);
        assert!(!text.contains(" = "), "{}: {text}", key.path);
        assert!(!key.example.is_empty(), "{}", key.path);
    }
    let retry = KEYS.iter().find(|key| key.path == "lease.retry");
    assert_eq!(
        retry.unwrap().description(),
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
        assert_eq!(any, Some(&json!("\\$\\{.+\\}")), "{path}");
    }
    let port = schema.pointer("/properties/rpc_port/default");
    assert_eq!(port, Some(&json!(8070)));
}
