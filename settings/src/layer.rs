//! Reads each layer on its own and lays it over the ones below.
//!
//! The `config` crate parses the sources. Merging is done here, because its merged tree no
//! longer knows which variable or file gave a value, and stops at the first error.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use config::{Environment, FileFormat, Format, Source, Value, ValueKind};

use super::flat::CONFIG;
use super::keys::{self, FILE_SUFFIX, KEYS, Meaning, OTEL_ENABLED, TRACING, variable};
use super::nearest::nearest;
use super::problem::{Problem, ProblemKind};
use super::raw::{Origin, Raw};
use super::tree::Tree;

/// The lowest layer, complete and commented.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// A value given by a flag.
#[derive(Clone)]
pub struct FlagValue {
    /// The flag as typed: `--rpc-port`, `--set`.
    pub flag: String,
    /// The TOML path it sets.
    pub path: String,
    /// The value; never shown before the path is known not to be a secret.
    pub value: String,
}

impl std::fmt::Debug for FlagValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlagValue")
            .field("flag", &self.flag)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Collects layers from the lowest to the highest.
pub(super) struct Layers<'a> {
    pub(super) tree: Tree,
    pub(super) problems: Vec<Problem>,
    env: &'a BTreeMap<String, String>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(env: &'a BTreeMap<String, String>) -> Self {
        Self {
            tree: Tree::default(),
            problems: Vec::new(),
            env,
        }
    }

    pub(super) fn defaults(&mut self) {
        self.toml(DEFAULT_TOML, &Origin::Default);
    }

    /// The files given, or the one that `UNKEY_CONFIG` names.
    pub(super) fn files(&mut self, files: &[PathBuf]) {
        let named = self.env.get(CONFIG).filter(|path| !path.is_empty());
        match named {
            Some(path) if files.is_empty() => self.file(Path::new(path)),
            _ => files.iter().for_each(|path| self.file(path)),
        }
    }

    fn file(&mut self, path: &Path) {
        let origin = Origin::File(path.to_owned());
        match read(path) {
            Ok(text) => self.toml(&text, &origin),
            Err(error) => self.problems.push(Problem {
                key: path.display().to_string(),
                value: None,
                origin: None,
                kind: ProblemKind::FileUnreadable(words(error.kind())),
                help: format!("check the path given with --config or UNKEY_CONFIG; {PARTIAL}"),
            }),
        }
    }

    fn toml(&mut self, text: &str, origin: &Origin) {
        match FileFormat::Toml.parse(None, text) {
            Ok(table) => {
                self.tree.begin_layer();
                self.table("", table, origin);
            }
            Err(error) => self.problems.push(syntax_problem(text, &*error, origin)),
        }
    }

    fn table(&mut self, prefix: &str, table: HashMap<String, Value>, origin: &Origin) {
        // Sorted, so that the same file always gives the same messages.
        for (name, value) in table.into_iter().collect::<BTreeMap<_, _>>() {
            let path = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            // A quoted key with a dot in it is not the nested key of the same spelling.
            let meaning = if name.contains('.') {
                Meaning::Unknown
            } else {
                keys::meaning(&path)
            };
            match (meaning, value.kind) {
                (Meaning::Section, ValueKind::Table(inner)) => {
                    self.tree.open_section(&path);
                    self.table(&path, inner, origin);
                }
                (meaning, kind) => {
                    let raw = Raw::from(Value::new(None, kind));
                    self.value(&path, meaning, raw, origin.clone());
                }
            }
        }
    }

    /// The flat variables of the original agent. Unknown ones are not ours to judge: Kubernetes
    /// injects such names for every Service.
    pub(super) fn flat_variables(&mut self) {
        self.tree.begin_layer();
        if let Some(text) = self.env.get(OTEL_ENABLED) {
            self.otel_enabled(text);
        }
        let set = KEYS.iter().filter_map(|key| {
            let name = key.flat?;
            let value = self.env.get(name)?;
            // `UNKEY_RPC_PORT` is also what a Service named `unkey-rpc` leads to.
            let injected = name.ends_with("_PORT") && value.contains("://");
            (!injected).then(|| (key.path.to_owned(), name.to_owned(), value.clone()))
        });
        let set: Vec<_> = set.collect();
        for (path, name, text) in from_environment(set) {
            self.tree
                .set(&path, Raw::Text(text), Origin::Variable(name));
        }
    }

    fn otel_enabled(&mut self, text: &str) {
        match text {
            "true" | "1" => self.tree.open_section(TRACING),
            "false" | "0" | "" => self.tree.remove_section(TRACING),
            other => self.problems.push(Problem {
                key: OTEL_ENABLED.to_owned(),
                value: Some(super::raw::show_text(other)),
                origin: Some(Origin::Variable(OTEL_ENABLED.to_owned())),
                kind: ProblemKind::OutOfRange("true or false".to_owned()),
                help: format!("set {OTEL_ENABLED} to true or false, or unset it"),
            }),
        }
    }

    /// `KRANE__SECTION__KEY`. `KRANE_…` with one underscore is what Kubernetes injects.
    pub(super) fn variables(&mut self) {
        self.tree.begin_layer();
        let mut known = Vec::new();
        for (name, value) in self.env {
            if !name.to_uppercase().starts_with("KRANE__") {
                continue;
            }
            let path = path_of_variable(name);
            if variable(&path) == *name && !matches!(keys::meaning(&path), Meaning::Unknown) {
                known.push((path, name.clone(), value.clone()));
            } else {
                self.problems.push(unknown_variable(name));
            }
        }
        for (path, name, text) in from_environment(known) {
            open_sections_of(&mut self.tree, &path);
            self.value(
                &path,
                keys::meaning(&path),
                Raw::Text(text),
                Origin::Variable(name),
            );
        }
    }

    pub(super) fn flags(&mut self, flags: &[FlagValue]) {
        self.tree.begin_layer();
        for FlagValue { flag, path, value } in flags {
            let origin = Origin::Flag(flag.clone());
            if let Some(key) = keys::find(path).filter(|key| key.kind.is_secret()) {
                self.problems.push(Problem {
                    key: path.clone(),
                    value: None,
                    origin: Some(origin),
                    kind: ProblemKind::SecretInFlag,
                    help: format!("use {} or {path}{FILE_SUFFIX} in a file", key.variable()),
                });
                continue;
            }
            open_sections_of(&mut self.tree, path);
            self.value(path, keys::meaning(path), Raw::Text(value.clone()), origin);
        }
    }

    fn value(&mut self, path: &str, meaning: Meaning, raw: Raw, origin: Origin) {
        match meaning {
            Meaning::Value | Meaning::SecretFile => self.tree.set(path, raw, origin),
            Meaning::Section => self.problems.push(Problem {
                key: path.to_owned(),
                value: None,
                origin: Some(origin),
                kind: ProblemKind::SectionExpected,
                help: format!("set the keys inside {path}, or remove it"),
            }),
            Meaning::Unknown => self.problems.push(Problem {
                key: path.to_owned(),
                value: None,
                origin: Some(origin),
                kind: ProblemKind::UnknownKey,
                help: unknown_key_help(path),
            }),
        }
    }
}

/// Added to the help when a layer is missing as a whole.
const PARTIAL: &str = "whether anything else is missing was not checked";

/// A configuration is text of some pages; a device that never ends is none.
const LONGEST_FILE: u64 = 4 << 20;

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// Why a file cannot be read, as a person would say it.
pub(super) fn words(kind: std::io::ErrorKind) -> String {
    if kind == std::io::ErrorKind::NotFound {
        "no such file".to_owned()
    } else {
        kind.to_string()
    }
}

/// Hands the variables to the `config` crate, which never guesses a type: `00123` stays text.
fn from_environment(set: Vec<(String, String, String)>) -> Vec<(String, String, String)> {
    let source = set
        .iter()
        .map(|(path, _, value)| (variable(path), value.clone()))
        .collect();
    let environment = Environment::with_prefix("KRANE")
        .prefix_separator("__")
        .separator("__")
        .source(Some(source));
    let mut values = environment.collect().unwrap_or_default();
    let text = |value: Value| value.into_string().unwrap_or_default();
    set.into_iter()
        .filter_map(|(path, name, _)| values.remove(&path).map(|value| (path, name, text(value))))
        .collect()
}

fn open_sections_of(tree: &mut Tree, path: &str) {
    path.match_indices('.')
        .for_each(|(dot, _)| tree.open_section(&path[..dot]));
}

fn path_of_variable(name: &str) -> String {
    name.get("KRANE__".len()..)
        .unwrap_or_default()
        .to_lowercase()
        .replace("__", ".")
}

fn unknown_variable(name: &str) -> Problem {
    let known: Vec<_> = keys::known_paths()
        .iter()
        .map(|path| variable(path))
        .collect();
    let help = match nearest(name, known.iter().map(String::as_str)) {
        Some(closest) => format!("did you mean {closest}?"),
        None => format!("unset {name}; `krane check-config --print` lists every key"),
    };
    Problem {
        key: name.to_owned(),
        value: None,
        origin: Some(Origin::Variable(name.to_owned())),
        kind: ProblemKind::UnknownKey,
        help,
    }
}

fn unknown_key_help(path: &str) -> String {
    if path == "cluster" {
        return "move `region` and `platform` to the top of the file, remove the rest".to_owned();
    }
    let known = keys::known_paths();
    match nearest(path, known.iter().map(String::as_str)) {
        Some(closest) => format!("did you mean {closest}?"),
        None => format!("remove {path}; `krane check-config --print` lists every key"),
    }
}

/// `error` is what the `config` crate says: something is wrong, in words of no particular place.
fn syntax_problem(
    text: &str,
    error: &(dyn std::error::Error + Send + Sync + 'static),
    origin: &Origin,
) -> Problem {
    let (_, errors) = toml::de::DeTable::parse_recoverable(text);
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let first = errors.into_iter().min_by_key(start);
    let first = first.as_ref().or_else(|| error.downcast_ref());
    let (line, column, reason) = match first {
        Some(error) => {
            let before = text.get(..start(error)).unwrap_or_default();
            let last = before.rsplit('\n').next().unwrap_or_default();
            (
                before.matches('\n').count() + 1,
                last.chars().count() + 1,
                error.message().to_owned(),
            )
        }
        None => (0, 0, "a number is too large".to_owned()),
    };
    let remedy = if reason.starts_with("duplicate key") {
        "keep one of the lines that set this key"
    } else {
        "correct the line; text needs quotes, also around ${…}"
    };
    Problem {
        key: origin.to_string(),
        value: None,
        origin: None,
        kind: ProblemKind::Syntax {
            line,
            column,
            reason,
        },
        help: format!("{remedy}; {PARTIAL}"),
    }
}
