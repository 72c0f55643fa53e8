//! What `krane render` reads: every fault of it at once, each with its place in the file.

use std::collections::BTreeSet;
use std::fmt;

use krane_domain::ids::Controller;
use krane_domain::invalid::Invalid;
use krane_domain::words::cut;
use krane_proto::ctrl::v1::{CiliumNetworkPolicyState, DeploymentState, SentinelState};
use krane_settings::nearest;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fault::{FaultKind, Found};
use super::sample::sample;

/// A state as it was read, and where.
pub(super) struct Given<'a, S> {
    pub(super) state: S,
    /// Names of fields that cannot be read, as [`bare`] has them. The state is as if they were mended.
    pub(super) unreadable: BTreeSet<String>,
    path: String,
    raw: &'a RawValue,
}

/// The states of a text, and what of it cannot be read.
pub(super) struct Input<'a> {
    pub(super) text: &'a str,
    pub(super) deployments: Vec<Given<'a, DeploymentState>>,
    pub(super) sentinels: Vec<Given<'a, SentinelState>>,
    pub(super) policies: Vec<Given<'a, CiliumNetworkPolicyState>>,
    pub(super) faults: Vec<Found>,
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
    // Editors of Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Fields(lists) = serde_json::from_str(text)?;
    let mut input = Input {
        text,
        deployments: Vec::new(),
        sentinels: Vec::new(),
        policies: Vec::new(),
        faults: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for (name, list) in lists {
        match name.as_str() {
            "deployments" | "sentinels" | "ciliumNetworkPolicies" if !seen.insert(name.clone()) => {
                let words = "is given twice; put its states into one list";
                input.unreadable(name, list, words.to_owned());
            }
            "deployments" => {
                let states = input.states(Controller::Deployments, &name, list);
                input.deployments.extend(states);
            }
            "sentinels" => {
                let states = input.states(Controller::Sentinels, &name, list);
                input.sentinels.extend(states);
            }
            "ciliumNetworkPolicies" => {
                let states = input.states(Controller::Cilium, &name, list);
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
    fn states<S: DeserializeOwned>(
        &mut self,
        controller: Controller,
        name: &str,
        list: &'a RawValue,
    ) -> Vec<Given<'a, S>> {
        let Ok(items) = serde_json::from_str::<Vec<&'a RawValue>>(list.get()) else {
            self.unreadable(name.to_owned(), list, "must be a list of states".to_owned());
            return Vec::new();
        };
        let sample = sample(controller);
        let mut states = Vec::new();
        for (number, raw) in items.into_iter().enumerate() {
            let path = format!("{name}[{number}]");
            let (unreadable, state) = match serde_json::from_str(raw.get()) {
                Ok(state) => (BTreeSet::new(), Some(state)),
                Err(error) => {
                    let unreadable = self.refused::<S>(&path, raw, &error);
                    let state = mended(raw, &unreadable, &sample);
                    (unreadable, state)
                }
            };
            if let Some(state) = state {
                states.push(Given {
                    state,
                    unreadable,
                    path,
                    raw,
                });
            }
        }
        states
    }

    /// Finds all that cannot be read of a state: each field is read by itself. Returns their names,
    /// and those that were meant.
    fn refused<S: DeserializeOwned>(
        &mut self,
        path: &str,
        state: &'a RawValue,
        error: &serde_json::Error,
    ) -> BTreeSet<String> {
        let before = self.faults.len();
        let mut unreadable = BTreeSet::new();
        for (key, value) in fields(state) {
            let inner = fields(value);
            let is_message = matches!(key.as_str(), "apply" | "delete") && !inner.is_empty();
            if !is_message {
                let alone = object(&key, value.get());
                if let Err(error) = serde_json::from_str::<S>(&alone) {
                    self.unreadable(format!("{path}.{key}"), value, words(&error).0);
                    unreadable.insert(bare(&key));
                }
                continue;
            }
            for (field, value) in inner {
                let alone = object(&key, &object(&field, value.get()));
                if let Err(error) = serde_json::from_str::<S>(&alone) {
                    let (words, meant) = words(&error);
                    self.unreadable(format!("{path}.{key}.{field}"), value, words);
                    unreadable.insert(bare(&field));
                    unreadable.extend(meant.as_deref().map(bare));
                }
            }
        }
        // Each is well by itself, and together they are not: such as a field given twice.
        if self.faults.len() == before {
            self.unreadable(path.to_owned(), state, words(error).0);
        }
        unreadable
    }

    fn unreadable(&mut self, path: String, raw: &RawValue, words: String) {
        let words = cut(words).replace("invalid digit found in string", "is no whole number");
        self.faults.push(Found {
            path: cut(path),
            offset: self.offset(raw),
            what: FaultKind::Unreadable(words),
        });
    }

    /// krane would set this state aside.
    pub(super) fn invalid<S>(&self, given: &Given<'a, S>, invalid: Invalid) -> Found {
        let wanted = bare(outer(&invalid.field));
        let messages = fields(given.raw).into_iter();
        let mut all = messages.flat_map(|(_, message)| fields(message));
        let field = all.find(|(name, _)| bare(name) == wanted);
        let raw = field.map_or(given.raw, |(_, value)| value);
        Found {
            path: given.path.clone(),
            offset: self.offset(raw),
            what: FaultKind::Invalid(invalid),
        }
    }

    /// What was read unread is a part of the text itself.
    fn offset(&self, raw: &RawValue) -> usize {
        let start = raw.get().as_ptr().addr();
        start.saturating_sub(self.text.as_ptr().addr())
    }
}

impl<S: DeserializeOwned> Given<'_, S> {
    /// The state as if these fields were mended, too.
    pub(super) fn mended(&self, wrong: &BTreeSet<String>, sample: &Value) -> Option<S> {
        mended(self.raw, wrong, sample)
    }
}

/// The state as if these fields, and those that are given twice, were mended: each is as in the
/// sample, or left out.
fn mended<S: DeserializeOwned>(
    state: &RawValue,
    wrong: &BTreeSet<String>,
    sample: &Value,
) -> Option<S> {
    let mut messages = fields(state).into_iter();
    let (kind, message) = messages.find(|(name, _)| matches!(name.as_str(), "apply" | "delete"))?;
    if wrong.contains(&kind) {
        return None;
    }
    let mut mended = serde_json::Map::new();
    let mut seen = wrong.clone();
    // A state without a name is no state.
    let is_nameless = wrong.contains("state");
    for (name, value) in fields(message) {
        let is_empty = is_nameless && value.get() == "\"\"";
        if !is_empty && seen.insert(bare(&name)) {
            mended.insert(name, serde_json::from_str(value.get()).ok()?);
        }
    }
    for (name, value) in sample.as_object().into_iter().flatten() {
        let is_name = name.starts_with("k8s");
        let is_wrong = wrong.contains(&bare(name));
        let is_missing = is_nameless && is_name && !seen.contains(&bare(name));
        // To delete, a name is enough.
        if (is_wrong || is_missing) && (is_name || kind == "apply") {
            mended.insert(name.clone(), value.clone());
        }
    }
    serde_json::from_value(json!({ kind: mended })).ok()
}

/// A field under its proto name and its name in JSON are the same.
pub(super) fn bare(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// The field of the message that this is, or is a part of: `autoscaling` of `autoscaling.min_replicas`.
pub(super) fn outer(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or(field)
}

/// The fields of an object; of anything else none.
fn fields(raw: &RawValue) -> Vec<(String, &RawValue)> {
    serde_json::from_str(raw.get()).map_or_else(|_| Vec::new(), |Fields(fields)| fields)
}

fn object(key: &str, value: &str) -> String {
    format!("{{{}:{value}}}", Value::from(key))
}

/// The words of an error without its place, which is that of the part alone. And the field that was
/// meant by an unknown one.
fn words(error: &serde_json::Error) -> (String, Option<String>) {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    // Of some forty fields the one that was meant is enough.
    let Some((unknown, known)) = text.split_once(", expected one of ") else {
        return (text.to_owned(), None);
    };
    let name = unknown.split('`').nth(1).unwrap_or_default();
    let known = known.split('`').skip(1).step_by(2);
    match nearest(name, known.filter(|name| !name.contains('_'))) {
        Some(meant) => {
            let words = format!("{unknown}, did you mean `{meant}`?");
            (words, Some(meant.to_owned()))
        }
        None => (unknown.to_owned(), None),
    }
}
