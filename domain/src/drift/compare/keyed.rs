//! Lists whose items have keys, and sets.

use serde_json::{Map, Value};

use super::{Owned, Walk};
use crate::drift::difference::{DifferenceKind, Step};

/// An item that krane owns, as managed fields name it.
pub(super) enum Name {
    /// `k:{"name":"PORT"}`
    Keys(Map<String, Value>),
    /// `v:"kubernetes"`
    Member(Value),
}

impl Name {
    pub(super) fn parse(name: &str) -> Option<Self> {
        if let Some(keys) = name.strip_prefix("k:") {
            return serde_json::from_str(keys).ok().map(Self::Keys);
        }
        serde_json::from_str(name.strip_prefix("v:")?)
            .ok()
            .map(Self::Member)
    }

    pub(super) fn is_name_of(&self, item: &Value) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().all(|(key, value)| match item.get(key) {
                Some(own) => own == value,
                // The one key with a default in the schema.
                None => key == "protocol" && value == "TCP",
            }),
            Self::Member(value) => item == value,
        }
    }

    /// The keys as they stand in paths.
    fn text(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        };
        match self {
            Self::Keys(keys) => keys
                .iter()
                .map(|(key, value)| format!("{key}={}", text(value)))
                .collect::<Vec<_>>()
                .join(","),
            Self::Member(value) => text(value),
        }
    }

    fn step(&self) -> Step<'static> {
        Step::Item(self.text())
    }

    /// The name that an item of the same list would have.
    fn of_sibling(&self, item: &Value) -> Self {
        match self {
            Self::Keys(keys) => Self::Keys(
                keys.keys()
                    .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
                    .collect(),
            ),
            Self::Member(_) => Self::Member(item.clone()),
        }
    }
}

/// An item's name in managed fields as it stands in paths: `name=PORT` for `k:{"name":"PORT"}`.
pub(in crate::drift) fn item_text(name: &str) -> Option<String> {
    Name::parse(name).map(|name| name.text())
}

impl<'a> Walk<'a> {
    /// Items are found by their keys; those of krane must also be in the wanted order, a change
    /// of which no managed field shows.
    pub(super) fn keyed(
        &mut self,
        rendered: &'a [Value],
        parts: &'a Map<String, Value>,
        live: Option<&'a Value>,
    ) {
        let live_items = live
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let names: Vec<(Name, &Value)> = parts
            .iter()
            .filter_map(|(name, node)| Some((Name::parse(name)?, node)))
            .collect();
        let Some((sample, _)) = names.first() else {
            // Fields where items should be: owned as an object, wanted as a list.
            self.report(DifferenceKind::Value, None, live);
            return;
        };

        let mut positions = Vec::new();
        for item in rendered {
            let Some((name, node)) = names.iter().find(|(name, _)| name.is_name_of(item)) else {
                let name = sample.of_sibling(item);
                let live = live_items.iter().find(|live| name.is_name_of(live));
                self.at(name.step(), |walk| {
                    walk.report(DifferenceKind::RenderedNotOwned, Some(item), live);
                });
                continue;
            };
            let position = live_items.iter().position(|live| name.is_name_of(live));
            positions.extend(position);
            let live = position.and_then(|position| live_items.get(position));
            self.at(name.step(), |walk| {
                walk.node(item, Owned::of(Some(node)), live);
            });
        }
        for (name, _) in &names {
            if !rendered.iter().any(|item| name.is_name_of(item)) {
                let live = live_items.iter().find(|live| name.is_name_of(live));
                self.at(name.step(), |walk| {
                    walk.report(DifferenceKind::OwnedNotRendered, None, live);
                });
            }
        }
        if !positions.is_sorted() {
            self.report(DifferenceKind::Order, None, live);
        }
    }
}
