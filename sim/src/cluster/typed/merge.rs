//! What an apply makes of a live value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Naming, Shape, Type, is_nothing, shape};

/// The live value with everything the applied one has: what both have is the applied one's.
pub(in crate::cluster) fn merge(
    of: &Type,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Option<Value> {
    match shape(of) {
        Shape::Object(children) if !(is_nothing(live) && is_nothing(applied)) => {
            let (left, right) = (object(live), object(applied));
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            let merged: Map<String, Value> = names
                .into_iter()
                .filter_map(|name| {
                    let (left, right) = (left.get(name), right.get(name));
                    let value = match children.of(name).0 {
                        Some(of) => merge(of, left, right),
                        None => right.or(left).cloned(),
                    };
                    Some((name.clone(), value?))
                })
                .collect();
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
        Shape::Items(item, naming) if !(is_nothing(live) && is_nothing(applied)) => {
            let merged = items(item, naming, list(live), list(applied));
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Shape::Object(_) | Shape::Items(..) | Shape::Leaf => applied.or(live).cloned(),
    }
}

/// Items of both lists, those of the applied one in its order, the others where they were.
fn items(of: &Type, naming: Naming<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<Box<str>> {
        let steps = items.iter().map(|item| naming.step(item));
        steps.map(Option::unwrap_or_default).collect()
    };
    let (left, right) = (steps(live), steps(applied));
    // A name that is in the live list more than once stands for no item of it.
    let mut known: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
    for (step, item) in left.iter().zip(live) {
        known
            .entry(step)
            .and_modify(|known| *known = None)
            .or_insert(Some(item));
    }
    let wanted: BTreeMap<&str, &Value> = right.iter().map(AsRef::as_ref).zip(applied).collect();
    let mut shared: VecDeque<&str> = right
        .iter()
        .map(AsRef::as_ref)
        .filter(|step: &&str| known.contains_key(step))
        .collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() {
            let step = &*left[l];
            if *step == *right[r] {
                done.insert(step);
                let live = known.get(step).copied().flatten();
                merged.extend(merge(of, live, wanted.get(step).copied()));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.pop_front();
                continue;
            }
            if wanted.contains_key(step) && next_shared.is_some_and(|next| next != step) {
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            let step = &*left[l];
            if !wanted.contains_key(step) {
                merged.extend(merge(of, Some(&live[l]), None));
                l += 1;
                continue;
            } else if done.contains(step) {
                l += 1;
            }
        }
        if r < right.len() {
            let step = &*right[r];
            done.insert(step);
            let live = known.get(step).copied().flatten();
            merged.extend(merge(of, live, wanted.get(step).copied()));
            r += 1;
            if next_shared == Some(step) {
                next_shared = shared.pop_front();
            }
        }
    }
    merged
}

fn object(value: Option<&Value>) -> &Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.and_then(Value::as_object).unwrap_or(&EMPTY)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
