//! Values, by what they mean to the API server.

use serde_json::{Number, Value};

use super::Walk;
use crate::drift::difference::{DifferenceKind, Step};
use crate::quantity::Quantity;

impl<'a> Walk<'a> {
    /// Only what is wanted is looked at: defaults and foreign keys in objects are none of krane's
    /// business, other lists are taken item by item.
    pub(super) fn value(&mut self, rendered: &'a Value, live: Option<&'a Value>) {
        let live = live.filter(|live| !live.is_null());
        match (rendered, live) {
            (Value::Object(map), Some(Value::Object(_))) => {
                for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                    let live = live.and_then(|live| live.get(key));
                    self.at(Step::Key(key), |walk| walk.value(value, live));
                }
            }
            (Value::Array(wanted), Some(Value::Array(items))) if wanted.len() == items.len() => {
                for (index, (value, live)) in wanted.iter().zip(items).enumerate() {
                    self.at(Step::Index(index), |walk| walk.value(value, Some(live)));
                }
            }
            (_, None) if is_empty(rendered) => {}
            (_, Some(live)) if self.is_equal(rendered, live) => {}
            _ => self.report(DifferenceKind::Value, Some(rendered), live),
        }
    }

    fn is_equal(&self, rendered: &Value, live: &Value) -> bool {
        match (rendered, live) {
            (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
            (Value::Number(number), Value::String(text))
            | (Value::String(text), Value::Number(number))
                if self.is_int_or_string() =>
            {
                number.to_string() == *text
            }
            (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_))
                if self.is_quantity() =>
            {
                quantity(rendered).is_some_and(|one| Some(one) == quantity(live))
                    || rendered == live
            }
            _ => rendered == live,
        }
    }

    /// Quantities have no type of their own in JSON: their place tells.
    fn is_quantity(&self) -> bool {
        let mut keys = self.steps.iter().filter_map(|step| match step {
            Step::Key(key) => Some(*key),
            Step::Item(_) | Step::Index(_) => None,
        });
        // A label or annotation may have any name.
        let is_text = |key: &str| matches!(key, "labels" | "annotations" | "matchLabels" | "data");
        let is_quantity = |key: &str| {
            matches!(
                key,
                "limits" | "requests" | "sizeLimit" | "divisor" | "averageValue" | "storage"
            )
        };
        keys.find(|key| is_text(key) || is_quantity(key))
            .is_some_and(is_quantity)
    }

    /// Fields that take a number or a name.
    fn is_int_or_string(&self) -> bool {
        let is_probe = |key: &str| matches!(key, "httpGet" | "tcpSocket");
        match self.steps.as_slice() {
            [
                ..,
                Step::Key("targetPort" | "maxUnavailable" | "minAvailable" | "maxSurge"),
            ] => true,
            [.., Step::Key(parent), Step::Key("port")] => is_probe(parent),
            _ => false,
        }
    }
}

/// What the API server drops instead of keeping it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn is_same_number(one: &Number, other: &Number) -> bool {
    one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64())
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
