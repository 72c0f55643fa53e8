//! What differs between two values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Naming, Shape, Type, field_step, is_nothing, shape};
use crate::cluster::field_set::FieldSet;

/// Paths that differ between a value and the one that replaces it.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Comparison {
    pub(in crate::cluster) added: FieldSet,
    pub(in crate::cluster) removed: FieldSet,
    pub(in crate::cluster) modified: FieldSet,
}

/// What makes `new` another value than `old`.
pub(in crate::cluster) fn compare(of: &Type, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    walk(of, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn walk(
    of: &Type,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<Box<str>>,
    found: &mut Comparison,
) {
    if old.is_some() && old == new {
        return;
    }
    match shape(of) {
        Shape::Object(children) if !(is_nothing(old) && is_nothing(new)) => {
            let maps = [old, new]
                .into_iter()
                .flatten()
                .filter_map(Value::as_object);
            let names: BTreeSet<&String> = maps.flat_map(serde_json::Map::keys).collect();
            for name in names {
                let old = old.and_then(|map| map.get(name));
                let new = new.and_then(|map| map.get(name));
                path.push(field_step(name));
                let of = children.of(name).0.unwrap_or(&Type::Any);
                walk(of, old, new, path, found);
                path.pop();
            }
        }
        Shape::Items(of, naming) if !(is_nothing(old) && is_nothing(new)) => {
            let (left, right) = (by_name(naming, old), by_name(naming, new));
            let steps: BTreeSet<&Box<str>> = left.keys().chain(right.keys()).collect();
            for step in steps {
                let old = left.get(step).map_or(&[][..], Vec::as_slice);
                let new = right.get(step).map_or(&[][..], Vec::as_slice);
                path.push(step.clone());
                repeated(of, old, new, path, found);
                path.pop();
            }
        }
        Shape::Object(_) | Shape::Items(..) | Shape::Leaf => {
            match (old, new) {
                (None, _) => found.added.insert(path),
                (_, None) => found.removed.insert(path),
                _ => found.modified.insert(path),
            }
            return;
        }
    }
    match (old, new) {
        (None, _) => found.added.insert(path),
        (_, None) => found.removed.insert(path),
        _ => {}
    }
}

/// Items of one name: more than one are compared as one value.
fn repeated(
    of: &Type,
    old: &[&Value],
    new: &[&Value],
    path: &mut Vec<Box<str>>,
    found: &mut Comparison,
) {
    match (old, new) {
        (_, _) if old.len() <= 1 && new.len() <= 1 => {
            walk(of, old.first().copied(), new.first().copied(), path, found);
        }
        (_, _) if old.len() >= 2 && new.len() >= 2 => {
            if old != new {
                found.modified.insert(path);
            }
        }
        (_, _) if old.len() >= 2 => {
            if let Some(new) = new.first() {
                walk(of, None, Some(new), path, found);
            }
            found.removed.insert(path);
        }
        (_, _) => {
            if let Some(old) = old.first() {
                walk(of, Some(old), None, path, found);
            }
            found.added.insert(path);
        }
    }
}

fn by_name<'a>(naming: Naming<'_>, list: Option<&'a Value>) -> BTreeMap<Box<str>, Vec<&'a Value>> {
    let mut named: BTreeMap<Box<str>, Vec<&Value>> = BTreeMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Some(step) = naming.step(item) {
            named.entry(step).or_default().push(item);
        }
    }
    named
}
