//! Which objects a list or watch is about.

use krane_domain::kinds::WatchSpec;
use serde_json::Value;

use super::refusals::{self, Status};
use super::store::Version;

/// What a list or watch selects.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// The selectors of a specification, as the API server reads them.
    pub(super) fn parse(spec: &WatchSpec) -> Result<Self, Status> {
        let labels = split(&spec.label_selector);
        let fields = spec
            .field_selector
            .split(',')
            .filter(|term| !term.is_empty());
        Ok(Self {
            labels: labels
                .iter()
                .map(|term| requirement(term))
                .collect::<Result<_, _>>()?,
            fields: fields.map(field).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn matches(&self, version: &Version) -> bool {
        let labels = version.metadata("labels");
        self.labels
            .iter()
            .all(|requirement| requirement.matches(labels))
            && self.fields.iter().all(|(path, is_equal, wanted)| {
                let pointer = format!("/{}", path.replace('.', "/"));
                let found = version.value().pointer(&pointer).and_then(Value::as_str);
                (found.unwrap_or_default() == wanted) == *is_equal
            })
    }
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let get = |key: &str| labels.get(key).and_then(Value::as_str);
        match self {
            Self::In(key, values) => {
                get(key).is_some_and(|found| values.iter().any(|value| value == found))
            }
            Self::NotIn(key, values) => {
                get(key).is_none_or(|found| values.iter().all(|value| value != found))
            }
            Self::Exists(key) => get(key).is_some(),
            Self::Absent(key) => get(key).is_none(),
        }
    }
}

/// At commas that are in no parentheses.
fn split(selector: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let terms = selector.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    terms
        .map(str::trim)
        .filter(|term| !term.is_empty())
        .collect()
}

fn requirement(term: &str) -> Result<Requirement, Status> {
    let key = |text: &str| text.trim().to_owned();
    for (operator, is_in) in [(" notin ", false), (" in ", true)] {
        if let Some((name, values)) = term.split_once(operator) {
            let values = values.trim().trim_start_matches('(').trim_end_matches(')');
            let values = values
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect();
            return Ok(if is_in {
                Requirement::In(key(name), values)
            } else {
                Requirement::NotIn(key(name), values)
            });
        }
    }
    let equality = [("!=", false), ("==", true), ("=", true)];
    for (operator, is_in) in equality {
        if let Some((name, value)) = term.split_once(operator) {
            let values = vec![key(value)];
            return Ok(if is_in {
                Requirement::In(key(name), values)
            } else {
                Requirement::NotIn(key(name), values)
            });
        }
    }
    if term.contains(char::is_whitespace) {
        return Err(refusals::bad_request(format!(
            "unable to parse requirement: {term}"
        )));
    }
    Ok(match term.strip_prefix('!') {
        Some(name) => Requirement::Absent(key(name)),
        None => Requirement::Exists(key(term)),
    })
}

fn field(term: &str) -> Result<(String, bool, String), Status> {
    let (path, is_equal, value) = if let Some((path, value)) = term.split_once("!=") {
        (path, false, value)
    } else if let Some((path, value)) = term.split_once('=') {
        (path, true, value.trim_start_matches('='))
    } else {
        return Err(refusals::bad_request(format!(
            "invalid field selector: {term}"
        )));
    };
    let known = [
        "metadata.name",
        "metadata.namespace",
        "status.phase",
        "spec.nodeName",
        "type",
    ];
    if !known.contains(&path) {
        return Err(refusals::bad_request(format!(
            "field label not supported: {path}"
        )));
    }
    Ok((path.to_owned(), is_equal, value.to_owned()))
}

/// Whether a `matchLabels`/`matchExpressions` selector of an object selects these labels.
pub(super) fn label_selector_matches(selector: &Value, labels: &Value) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut equal = equal.map(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector["matchExpressions"].as_array();
    let mut expressions = expressions.into_iter().flatten().map(|expression| {
        let key = expression["key"].as_str().unwrap_or_default();
        let found = labels.get(key);
        let values = expression["values"].as_array();
        let has = found.is_some_and(|found| values.is_some_and(|values| values.contains(found)));
        match expression["operator"].as_str() {
            Some("In") => has,
            Some("NotIn") => !has,
            Some("Exists") => found.is_some(),
            Some("DoesNotExist") => found.is_none(),
            _ => false,
        }
    });
    equal.all(|fits| fits) && expressions.all(|fits| fits)
}
