//! A bundle that was read, and what it answers.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::admin::model::Filter;

/// Why a bundle was not written, or does not answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum BundleError {
    #[error("the bundle cannot be written to {file}: {error}")]
    Write {
        file: PathBuf,
        error: std::io::Error,
    },
    #[error("{file} cannot be read: {error}")]
    Read {
        file: PathBuf,
        error: std::io::Error,
    },
    #[error("{file} is no support bundle: {why}")]
    Form { file: PathBuf, why: String },
    #[error("the bundle does not have {path}")]
    Missing { path: String },
}

impl BundleError {
    pub(in crate::cli) const fn help(&self) -> &'static str {
        match self {
            Self::Write { .. } => {
                "name a file that is not there yet, in a folder that may be written"
            }
            Self::Read { .. } => "name a file that `krane support-bundle` wrote",
            Self::Form { .. } => "make it anew with `krane support-bundle`, of this version",
            Self::Missing { .. } => {
                "a bundle has the pages of 200 workloads only, those in trouble first; \
                 `krane status WORD --from` tells what it has of this one"
            }
        }
    }
}

/// What krane answered once.
#[derive(Debug, Deserialize)]
pub(in crate::cli) struct Bundle {
    kind: String,
    answers: Map<String, Value>,
}

/// What is asked of a list.
#[derive(Debug, Default)]
struct Query {
    filter: Filter,
    limit: Option<usize>,
}

impl Bundle {
    /// Reads the file.
    pub(in crate::cli) fn read(file: &Path) -> Result<Self, BundleError> {
        let text = std::fs::read(file).map_err(|error| BundleError::Read {
            file: file.to_owned(),
            error,
        })?;
        let form = |why: String| BundleError::Form {
            file: file.to_owned(),
            why,
        };
        let bundle: Self =
            serde_json::from_slice(&text).map_err(|error| form(error.to_string()))?;
        match bundle.kind.as_str() {
            "SupportBundle" => Ok(bundle),
            other => Err(form(format!("its kind is {other:?}"))),
        }
    }

    /// When it was made, by krane's clock.
    pub(in crate::cli) fn taken_at(&self) -> Option<&str> {
        self.answers
            .get("/api/v1/health")?
            .get("taken_at")?
            .as_str()
    }

    /// What krane answered to this; lists are searched as krane does it.
    pub(in crate::cli) fn answer(self, asked: &str) -> Result<Value, BundleError> {
        let Self { mut answers, .. } = self;
        let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
        let Some(mut answer) = answers.remove(path) else {
            let path = path.to_owned();
            return Err(BundleError::Missing { path });
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
        } else if let Some(events) = list(&mut answer, "events") {
            events.retain(|it| {
                let words = ["object", "actor", "controller", "kind", "text"];
                query
                    .filter
                    .is_in(&words.map(|name| text(it, name)).join(" "))
            });
        }
        Ok(answer)
    }
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
