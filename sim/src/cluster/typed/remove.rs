//! Fields taken out of a value.

use serde_json::{Map, Value};

use super::{Shape, Type, field_step, shape};
use crate::cluster::field_set::FieldSet;

/// The value without these fields. What has nothing left becomes null.
pub(in crate::cluster) fn remove(of: &Type, value: &Value, fields: &FieldSet) -> Value {
    match (shape(of), value) {
        (Shape::Object(children), Value::Object(map)) => {
            let kept: Map<String, Value> = map
                .iter()
                .filter_map(|(name, value)| {
                    let step = field_step(name);
                    if fields.has(&step) {
                        return None;
                    }
                    let value = match (children.of(name).0, fields.below(&step)) {
                        (Some(of), Some(below)) => remove(of, value, below),
                        _ => value.clone(),
                    };
                    Some((name.clone(), value))
                })
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        (Shape::Items(of, naming), Value::Array(items)) => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| {
                    let Some(step) = naming.step(item) else {
                        return Some(item.clone());
                    };
                    if fields.has(&step) {
                        return None;
                    }
                    Some(match fields.below(&step) {
                        Some(below) => remove(of, item, below),
                        None => item.clone(),
                    })
                })
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        (Shape::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        (Shape::Object(_) | Shape::Items(..) | Shape::Leaf, _) => value.clone(),
    }
}
