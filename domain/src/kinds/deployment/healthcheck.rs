//! The healthcheck JSON of a deployment, and the probe it becomes.

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::{Healthcheck, ProbeMethod};
use crate::invalid::Invalid;

/// Longest path of a probe, in bytes.
const MAX_PATH_LENGTH: usize = 2048;

/// What came of reading a healthcheck.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// None is wanted.
    None,
    /// This one is wanted.
    Probe(Healthcheck),
    /// Nobody knows which one is wanted: the workload runs without probes.
    Unreadable(Invalid),
}

/// Reads a healthcheck as JSON; nothing and `null` are none.
///
/// Keys are matched whatever their case and the last one wins, negative numbers count as 0, a path
/// gets its leading slash. A path that could not be meant as one is invalid: it ends up in the
/// arguments of a command.
pub(super) fn parse(json: &[u8]) -> Result<Parsed, Invalid> {
    if json.is_empty() {
        return Ok(Parsed::None);
    }
    match serde_json::from_slice::<Option<Fields>>(json) {
        Ok(None) => Ok(Parsed::None),
        Ok(Some(fields)) => Ok(Parsed::Probe(Healthcheck {
            method: if fields.method == "POST" {
                ProbeMethod::Post
            } else {
                ProbeMethod::Get
            },
            path: path(fields.path)?,
            interval_seconds: fields.interval_seconds,
            timeout_seconds: fields.timeout_seconds,
            failure_threshold: fields.failure_threshold,
            initial_delay_seconds: fields.initial_delay_seconds,
        })),
        Err(error) => Ok(Parsed::Unreadable(Invalid::new(
            "healthcheck",
            format!(
                "is not readable at column {}; the workload gets no probes",
                error.column()
            ),
            "send an object with method, path and whole numbers of seconds",
        ))),
    }
}

fn path(path: String) -> Result<String, Invalid> {
    let problem = if path.len() > MAX_PATH_LENGTH {
        "is too long"
    } else if path.chars().any(char::is_control) {
        "contains a control character"
    } else if path.starts_with('-') {
        "begins with a dash"
    } else if path.starts_with('/') {
        return Ok(path);
    } else {
        return Ok(format!("/{path}"));
    };
    Err(Invalid::new(
        "healthcheck.path",
        problem,
        "send a path like /healthz",
    ))
}

/// The keys of the JSON as they came.
#[derive(Default)]
struct Fields {
    method: String,
    path: String,
    interval_seconds: u32,
    timeout_seconds: u32,
    failure_threshold: u32,
    initial_delay_seconds: u32,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a healthcheck object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            // A null leaves a field as it is.
            match key.to_lowercase().as_str() {
                "method" => set(&mut fields.method, map.next_value()?),
                "path" => set(&mut fields.path, map.next_value()?),
                "intervalseconds" => set_number(&mut fields.interval_seconds, map.next_value()?),
                "timeoutseconds" => set_number(&mut fields.timeout_seconds, map.next_value()?),
                "failurethreshold" => set_number(&mut fields.failure_threshold, map.next_value()?),
                "initialdelayseconds" => {
                    set_number(&mut fields.initial_delay_seconds, map.next_value()?);
                }
                _ => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Negative numbers become 0, and what the API server could not hold its largest number.
fn set_number(field: &mut u32, number: Option<i64>) {
    if let Some(number) = number {
        *field = u32::try_from(number.clamp(0, i64::from(i32::MAX))).unwrap_or_default();
    }
}

/// The probe of a healthcheck, for readiness and liveness alike.
pub(super) fn probe(healthcheck: &Healthcheck, port: u16) -> Value {
    let mut probe = Map::new();
    let path = &healthcheck.path;
    match healthcheck.method {
        ProbeMethod::Get => {
            probe.insert("httpGet".to_owned(), json!({ "path": path, "port": port }));
        }
        ProbeMethod::Post => {
            let url = format!("http://localhost:{port}{path}");
            let command = json!(["wget", "--spider", "--post-data=", "-q", url]);
            probe.insert("exec".to_owned(), json!({ "command": command }));
        }
    }
    for (name, number) in [
        ("periodSeconds", healthcheck.interval_seconds),
        ("timeoutSeconds", healthcheck.timeout_seconds),
        ("failureThreshold", healthcheck.failure_threshold),
        ("initialDelaySeconds", healthcheck.initial_delay_seconds),
    ] {
        // A zero would come back as the default and differ for ever.
        if number != 0 {
            probe.insert(name.to_owned(), Value::from(number));
        }
    }
    Value::Object(probe)
}
