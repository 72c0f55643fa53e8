//! Sets of field paths, as `fieldsV1` of a manager writes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{ListKind, Type, schema};

/// Paths of fields. A step is written as in `fieldsV1`: `f:name`, `k:{"key":"value"}`, `v:"value"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeMap<Box<str>, Node>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    is_member: bool,
    children: FieldSet,
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, path: &[Box<str>]) {
        let Some((step, rest)) = path.split_first() else {
            return;
        };
        let node = self.0.entry(step.clone()).or_default();
        if rest.is_empty() {
            node.is_member = true;
        } else {
            node.children.insert(rest);
        }
    }

    /// Whether the step itself is a member.
    pub(super) fn has(&self, step: &str) -> bool {
        self.0.get(step).is_some_and(|node| node.is_member)
    }

    /// What is below a step, if anything.
    pub(super) fn below(&self, step: &str) -> Option<&Self> {
        let children = &self.0.get(step)?.children;
        (!children.is_empty()).then_some(children)
    }

    /// Without this step and everything below it.
    pub(super) fn without(mut self, step: &str) -> Self {
        self.0.remove(step);
        self
    }

    /// Only this step and everything below it.
    pub(super) fn only(mut self, step: &str) -> Self {
        self.0.retain(|known, _| **known == *step);
        self
    }

    /// Without these steps below one step, and without that step when nothing is left of it.
    pub(super) fn without_below(mut self, step: &str, below: &[&str]) -> Self {
        if let Some(node) = self.0.get_mut(step) {
            node.is_member = false;
            node.children
                .0
                .retain(|known, _| !below.contains(&&**known));
            if node.children.is_empty() {
                self.0.remove(step);
            }
        }
        self
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.add(other);
        all
    }

    fn add(&mut self, other: &Self) {
        for (step, node) in &other.0 {
            let known = self.0.entry(step.clone()).or_default();
            known.is_member |= node.is_member;
            known.children.add(&node.children);
        }
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine && !theirs)
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine && theirs)
    }

    fn combine(&self, other: &Self, rule: fn(bool, bool) -> bool) -> Self {
        let nothing = Node::default();
        let nodes = self.0.iter().filter_map(|(step, mine)| {
            let theirs = other.0.get(step).unwrap_or(&nothing);
            let node = Node {
                is_member: rule(mine.is_member, theirs.is_member),
                children: mine.children.combine(&theirs.children, rule),
            };
            (node.is_member || !node.children.is_empty()).then(|| (step.clone(), node))
        });
        Self(nodes.collect())
    }

    /// With every declared field on the way to a member.
    pub(super) fn with_named_fields(&self, of: Option<&Type>) -> Self {
        let nodes = self.0.iter().map(|(step, node)| {
            let (child, is_declared) = descend(of, step);
            let has_children = !node.children.is_empty();
            let node = Node {
                is_member: node.is_member || (is_declared && has_children),
                children: node.children.with_named_fields(child),
            };
            (step.clone(), node)
        });
        Self(nodes.collect())
    }

    /// As `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        let entries = self.0.iter().map(|(step, node)| {
            let mut children = node.children.to_map();
            if node.is_member && !children.is_empty() {
                children.insert(".".to_owned(), json!({}));
            }
            (step.to_string(), Value::Object(children))
        });
        entries.collect()
    }

    /// From `fieldsV1`.
    pub(super) fn from_json(fields: &Value) -> Self {
        let entries = fields.as_object().into_iter().flatten();
        let nodes = entries
            .filter(|(step, _)| *step != ".")
            .map(|(step, below)| {
                let children = Self::from_json(below);
                let is_member = children.is_empty() || below.get(".").is_some();
                (
                    step.as_str().into(),
                    Node {
                        is_member,
                        children,
                    },
                )
            });
        Self(nodes.collect())
    }
}

/// The type one step further, and whether the step is a declared field.
fn descend<'a>(of: Option<&'a Type>, step: &str) -> (Option<&'a Type>, bool) {
    match (of, step.strip_prefix("f:")) {
        (Some(Type::Struct { id, .. }), Some(name)) => {
            let field = schema().fields_of(*id).fields.get(name);
            (field.map(|field| &field.of), field.is_some())
        }
        (Some(Type::Map { item, .. }), Some(_))
        | (
            Some(Type::List {
                item,
                kind: ListKind::Keyed(_) | ListKind::Set,
            }),
            None,
        ) => (Some(item), false),
        _ => (None, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}}}},
        });
        assert_eq!(FieldSet::from_json(&fields).to_json(), fields);
    }

    #[test]
    fn sets_are_combined_path_by_path() {
        let left = FieldSet::from_json(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let right = FieldSet::from_json(&json!({"f:a": {"f:b": {}}, "f:d": {}}));
        assert_eq!(
            left.difference(&right).to_json(),
            json!({"f:a": {}, "f:c": {}})
        );
        assert_eq!(
            left.intersection(&right).to_json(),
            json!({"f:a": {"f:b": {}}})
        );
        assert_eq!(
            left.union(&right).to_json(),
            json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}})
        );
    }
}
