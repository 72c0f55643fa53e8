//! What `krane render` reads: every fault of it at once, each with its place in the file.

use std::fmt;

use krane_domain::invalid::Invalid;
use krane_proto::ctrl::v1::{CiliumNetworkPolicyState, DeploymentState, SentinelState};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::settings::nearest;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which state, and which of its fields: `deployments[2].apply.image`.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column } = self;
        write!(f, "{path} (line {line}, column {column})")
    }
}

/// Something that is wrong with the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What.
    pub what: FaultKind,
}

/// What may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is nothing that the messages have.
    Unreadable(String),
    /// It can be read, and krane would set it aside.
    Invalid(Invalid),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            FaultKind::Unreadable(words) => write!(f, "{}: {words}", self.place),
            FaultKind::Invalid(invalid) => write!(f, "{}: {invalid}", self.place),
        }
    }
}

/// A state as it was read, and where.
pub(super) struct Given<'a, S> {
    pub(super) state: S,
    path: String,
    raw: &'a RawValue,
}

/// The states of a text, and what of it cannot be read.
pub(super) struct Input<'a> {
    text: &'a str,
    pub(super) deployments: Vec<Given<'a, DeploymentState>>,
    pub(super) sentinels: Vec<Given<'a, SentinelState>>,
    pub(super) policies: Vec<Given<'a, CiliumNetworkPolicyState>>,
    pub(super) faults: Vec<Fault>,
}

/// The fields of an object, unread, in their order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, such as {\"deployments\": []}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reader).map(Self)
    }
}

/// Reads a text. It fails only where the text is no JSON, for then nobody knows what the rest of it is.
pub(super) fn read(text: &str) -> Result<Input<'_>, serde_json::Error> {
    let Fields(lists) = serde_json::from_str(text)?;
    let mut input = Input {
        text,
        deployments: Vec::new(),
        sentinels: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
    };
    for (name, list) in lists {
        match name.as_str() {
            "deployments" => {
                let states = input.states("deployments", list);
                input.deployments.extend(states);
            }
            "sentinels" => {
                let states = input.states("sentinels", list);
                input.sentinels.extend(states);
            }
            "ciliumNetworkPolicies" => {
                let states = input.states("ciliumNetworkPolicies", list);
                input.policies.extend(states);
            }
            _ => input.unreadable(
                name,
                list,
                "is none of deployments, sentinels and ciliumNetworkPolicies".to_owned(),
            ),
        }
    }
    Ok(input)
}

impl<'a> Input<'a> {
    fn states<S: DeserializeOwned>(&mut self, name: &str, list: &'a RawValue) -> Vec<Given<'a, S>> {
        let Ok(items) = serde_json::from_str::<Vec<&'a RawValue>>(list.get()) else {
            self.unreadable(name.to_owned(), list, "must be a list of states".to_owned());
            return Vec::new();
        };
        let mut states = Vec::new();
        for (number, raw) in items.into_iter().enumerate() {
            let path = format!("{name}[{number}]");
            match serde_json::from_str(raw.get()) {
                Ok(state) => states.push(Given { state, path, raw }),
                Err(error) => self.refused::<S>(path, raw, &error),
            }
        }
        states
    }

    /// Finds all that is wrong with a state: each field is read by itself.
    fn refused<S: DeserializeOwned>(
        &mut self,
        path: String,
        state: &'a RawValue,
        error: &serde_json::Error,
    ) {
        let before = self.faults.len();
        for (key, value) in fields(state) {
            let inner = fields(value);
            let is_message = matches!(key.as_str(), "apply" | "delete") && !inner.is_empty();
            if !is_message {
                let alone = object(&key, value.get());
                if let Err(error) = serde_json::from_str::<S>(&alone) {
                    self.unreadable(format!("{path}.{key}"), value, words(&error));
                }
                continue;
            }
            for (field, value) in inner {
                let alone = object(&key, &object(&field, value.get()));
                if let Err(error) = serde_json::from_str::<S>(&alone) {
                    self.unreadable(format!("{path}.{key}.{field}"), value, words(&error));
                }
            }
        }
        // Each is well by itself, and together they are not: such as a field given twice.
        if self.faults.len() == before {
            self.unreadable(path, state, words(error));
        }
    }

    fn unreadable(&mut self, path: String, raw: &RawValue, words: String) {
        let place = self.place(path, raw);
        let words = words.replace("invalid digit found in string", "is no whole number");
        let what = FaultKind::Unreadable(words);
        self.faults.push(Fault { place, what });
    }

    /// krane would set this state aside.
    pub(super) fn invalid<S>(&self, given: &Given<'a, S>, invalid: Invalid) -> Fault {
        let wanted = bare(&invalid.field);
        let messages = fields(given.raw).into_iter();
        let mut all = messages.flat_map(|(_, message)| fields(message));
        let field = all.find(|(name, _)| bare(name) == wanted);
        let raw = field.map_or(given.raw, |(_, value)| value);
        Fault {
            place: self.place(given.path.clone(), raw),
            what: FaultKind::Invalid(invalid),
        }
    }

    /// The state as if these fields were mended: each is as in the sample, or left out.
    pub(super) fn mended<S: DeserializeOwned>(
        given: &Given<'a, S>,
        wrong: &[String],
        sample: &Value,
    ) -> Option<S> {
        let bare_wrong: Vec<String> = wrong.iter().map(|field| bare(field)).collect();
        let is_wrong = |name: &str| bare_wrong.contains(&bare(name));
        let messages = fields(given.raw);
        let (_, apply) = messages.iter().find(|(name, _)| name == "apply")?;
        let mut mended = serde_json::Map::new();
        for (name, value) in fields(apply) {
            if !is_wrong(&name) {
                mended.insert(name, serde_json::from_str(value.get()).ok()?);
            }
        }
        for (name, value) in sample.as_object().into_iter().flatten() {
            if is_wrong(name) {
                mended.insert(name.clone(), value.clone());
            }
        }
        serde_json::from_value(json!({ "apply": mended })).ok()
    }

    fn place(&self, path: String, raw: &RawValue) -> Place {
        // What was read unread is a part of the text itself.
        let start = raw.get().as_ptr().addr();
        let offset = start.saturating_sub(self.text.as_ptr().addr());
        let before = self.text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        Place {
            path,
            line: before.matches('\n').count() + 1,
            column: in_line.chars().count() + 1,
        }
    }
}

/// A field under its proto name and its name in JSON are the same.
fn bare(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// The fields of an object; of anything else none.
fn fields(raw: &RawValue) -> Vec<(String, &RawValue)> {
    serde_json::from_str(raw.get()).map_or_else(|_| Vec::new(), |Fields(fields)| fields)
}

fn object(key: &str, value: &str) -> String {
    format!("{{{}:{value}}}", Value::from(key))
}

/// The words of an error without its place, which is that of the part alone.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    // Of some forty fields the one that was meant is enough.
    let Some((unknown, known)) = text.split_once(", expected one of ") else {
        return text.to_owned();
    };
    let name = unknown.split('`').nth(1).unwrap_or_default();
    let known = known.split('`').skip(1).step_by(2);
    match nearest(name, known.filter(|name| !name.contains('_'))) {
        Some(meant) => format!("{unknown}, did you mean `{meant}`?"),
        None => unknown.to_owned(),
    }
}
