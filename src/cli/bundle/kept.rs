//! A bundle that was read, and what it answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use krane_admin::model::Filter;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cli::exit;

/// No bundle is longer, in bytes.
const LONGEST: u64 = 256 << 20;
/// The form of bundles that is read.
const API_VERSION: &str = "krane/v1";
/// Where the pages of single workloads are.
const OWN_PAGES: &str = "/api/v1/workloads/";

/// In which fields of the items of a list it is searched.
const LISTS: [(&str, &[&str]); 2] = [
    ("events", &["object", "actor", "controller", "kind", "text"]),
    ("lines", &["level", "target", "text", "fields"]),
];

/// Why a bundle was not written, or does not answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum BundleError {
    #[error("{file} is there already")]
    Exists { file: PathBuf },
    #[error("the bundle cannot be written to {file}: {error}")]
    Write { file: PathBuf, error: io::Error },
    #[error("{file} cannot be read: {error}")]
    Read { file: PathBuf, error: io::Error },
    #[error("{file} is no support bundle: {why}")]
    Form { file: PathBuf, why: String },
    #[error("the bundle does not have {path}: {why}")]
    Missing { path: String, why: String },
}

impl BundleError {
    pub(in crate::cli) const fn code(&self) -> u8 {
        match self {
            Self::Write { .. } => exit::UNAVAILABLE,
            Self::Exists { .. } | Self::Read { .. } | Self::Form { .. } | Self::Missing { .. } => {
                exit::USAGE
            }
        }
    }

    pub(in crate::cli) const fn help(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "name a new file, or - for stdout: none is written over",
            Self::Write { .. } => "name a file in a folder that may be written and has room",
            Self::Read { .. } => "name a file that `krane support-bundle` wrote",
            Self::Form { .. } => "make it anew with `krane support-bundle`, of this version",
            Self::Missing { .. } => "make it anew when krane answers, or ask for something else",
        }
    }
}

/// What krane answered once.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    api_version: String,
    kind: String,
    answers: Map<String, Value>,
    #[serde(default)]
    missing: BTreeMap<String, String>,
}

/// A bundle and where it is from.
#[derive(Debug)]
pub(in crate::cli) struct Bundle {
    file: PathBuf,
    answers: Map<String, Value>,
    /// What krane did not answer, and why.
    missing: BTreeMap<String, String>,
}

/// What is asked of a list.
#[derive(Debug, Default)]
struct Query {
    filter: Filter,
    limit: Option<usize>,
}

impl Bundle {
    /// Reads the file; `-` is stdin.
    pub(in crate::cli) fn read(file: &Path) -> Result<Self, BundleError> {
        let form = |why: String| BundleError::Form {
            file: file.to_owned(),
            why,
        };
        let text = text_of(file).map_err(|error| BundleError::Read {
            file: file.to_owned(),
            error,
        })?;
        if text.len() as u64 > LONGEST {
            return Err(form(format!("it is longer than {} MiB", LONGEST >> 20)));
        }
        let read: Form = serde_json::from_slice(&text).map_err(|error| form(error.to_string()))?;
        let Form {
            api_version, kind, ..
        } = &read;
        if kind != "SupportBundle" || api_version != API_VERSION {
            return Err(form(format!("it is {kind:?} of {api_version:?}")));
        }
        Ok(Self {
            file: file.to_owned(),
            answers: read.answers,
            missing: read.missing,
        })
    }

    /// Something in it is not as a bundle has it.
    pub(in crate::cli) fn is_none(&self, why: String) -> BundleError {
        let file = self.file.clone();
        BundleError::Form { file, why }
    }

    /// When it was made, by krane's clock.
    pub(in crate::cli) fn taken_at(&self) -> Option<&str> {
        self.answers
            .get("/api/v1/health")?
            .get("taken_at")?
            .as_str()
    }

    /// What krane answered to this; lists are searched as krane does it.
    pub(in crate::cli) fn answer(&self, asked: &str) -> Result<Value, BundleError> {
        let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
        let Some(mut answer) = self.answers.get(path).cloned() else {
            let why = match self.missing.get(path) {
                Some(why) => why.as_str(),
                None if path.starts_with(OWN_PAGES) => {
                    "it has the pages of 200 workloads, those in trouble first"
                }
                None => "it is not complete",
            };
            return Err(BundleError::Missing {
                path: path.to_owned(),
                why: why.to_owned(),
            });
        };
        let query = Query::read(query);
        if let Some(workloads) = list(&mut answer, "workloads") {
            workloads.retain(|it| {
                let id = text(it, "id");
                let (namespace, name, state) =
                    (text(it, "namespace"), text(it, "name"), text(it, "state"));
                query
                    .filter
                    .is_in(&format!("{namespace}/{name} {id} {state}"))
            });
            let matching = workloads.len();
            workloads.truncate(query.limit.unwrap_or(matching));
            answer["matching"] = json!(matching);
        }
        for (name, fields) in LISTS {
            if let Some(items) = list(&mut answer, name) {
                items.retain(|it| {
                    let words: Vec<&str> = fields.iter().map(|field| text(it, field)).collect();
                    query.filter.is_in(&words.join(" "))
                });
            }
        }
        Ok(answer)
    }
}

fn text_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = LONGEST + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text)?;
    } else {
        File::open(file)?.take(most).read_to_end(&mut text)?;
    }
    Ok(text)
}

impl Query {
    fn read(query: &str) -> Self {
        let mut read = Self::default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        for (name, value) in pairs {
            match name {
                "filter" => {
                    read.filter = Filter::new(&percent_decode_str(value).decode_utf8_lossy());
                }
                "limit" => read.limit = value.parse().ok(),
                _ => {}
            }
        }
        read
    }
}

fn list<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut Vec<Value>> {
    of.get_mut(name)?.as_array_mut()
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}
