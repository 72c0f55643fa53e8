//! Values, by what they mean to the API server.

use serde_json::{Map, Number, Value};

use super::Walk;
use crate::drift::difference::{DifferenceKind, Step};
use crate::object::Resource;
use crate::quantity::Quantity;

impl<'a> Walk<'a> {
    /// Only what is wanted is looked at: defaults and foreign keys in objects are none of krane's
    /// business, other lists are taken item by item. But where everything is krane's business, what
    /// is not wanted may not be there, and nothing is not the same as something empty.
    pub(super) fn value(&mut self, rendered: &'a Value, live: Option<&'a Value>) {
        let live = live.filter(|live| !live.is_null());
        match (rendered, live) {
            (Value::Object(map), Some(Value::Object(_))) => {
                for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                    let live = live.and_then(|live| live.get(key));
                    self.at(Step::Key(key), |walk| walk.value(value, live));
                }
                if self.is_all_of_it() {
                    self.more_than(map, live);
                }
            }
            (Value::Array(wanted), Some(Value::Array(items))) if wanted.len() == items.len() => {
                for (index, (value, live)) in wanted.iter().zip(items).enumerate() {
                    self.at(Step::Index(index), |walk| walk.value(value, Some(live)));
                }
            }
            (_, None) if is_empty(rendered) && !self.is_all_of_it() => {}
            (_, Some(live)) if self.is_equal(rendered, live) => {}
            _ => self.report(DifferenceKind::Value, Some(rendered), live),
        }
    }

    /// Whether the API server keeps this as it was sent: rules of policies, to which it adds one
    /// known default, and selectors, to which it adds nothing.
    fn is_all_of_it(&self) -> bool {
        let is_rule = self.resource == Resource::CiliumNetworkPolicy
            && matches!(self.steps.first(), Some(Step::Key("spec" | "specs")));
        let is_selector = |step: &Step<'_>| {
            matches!(step, Step::Key("selector" | "matchLabels" | "nodeSelector"))
        };
        is_rule || self.steps.last().is_some_and(is_selector)
    }

    /// Members that are there beside those wanted.
    fn more_than(&mut self, wanted: &'a Map<String, Value>, live: Option<&'a Value>) {
        let members = live.and_then(Value::as_object).into_iter().flatten();
        let more = members
            .filter(|(key, value)| !value.is_null() && wanted.get(*key).is_none_or(Value::is_null));
        for (key, value) in more {
            if !self.is_default_of_rules(key, value) {
                self.at(Step::Key(key), |walk| {
                    walk.report(DifferenceKind::OwnedNotRendered, None, Some(value));
                });
            }
        }
    }

    /// The only default in a policy's rules, as measured: `icmps[].fields[].family`.
    fn is_default_of_rules(&self, key: &str, value: &Value) -> bool {
        let is_of_icmp = matches!(
            self.steps.as_slice(),
            [
                ..,
                Step::Key("icmps"),
                Step::Index(_),
                Step::Key("fields"),
                Step::Index(_)
            ]
        );
        is_of_icmp && key == "family" && value == "IPv4"
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
