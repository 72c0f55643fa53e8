//! Which fields a value has.

use serde_json::Value;

use super::{Shape, Type, field_step, shape};
use crate::cluster::field_set::FieldSet;

/// The paths of everything in the value.
pub(in crate::cluster) fn fields(of: &Type, value: &Value) -> FieldSet {
    let mut found = FieldSet::default();
    collect(of, value, &mut Vec::new(), &mut found);
    found
}

fn collect(of: &Type, value: &Value, path: &mut Vec<Box<str>>, found: &mut FieldSet) {
    match (shape(of), value) {
        (Shape::Object(children), Value::Object(map)) => {
            for (name, value) in map {
                let (of, is_declared) = children.of(name);
                path.push(field_step(name));
                if let Some(of) = of {
                    collect(of, value, path, found);
                }
                let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                if value.is_null() || is_empty || !is_declared {
                    found.insert(path);
                }
                path.pop();
            }
        }
        (Shape::Items(of, naming), Value::Array(items)) => {
            for item in items {
                if let Some(step) = naming.step(item) {
                    path.push(step);
                    collect(of, item, path, found);
                    found.insert(path);
                    path.pop();
                }
            }
        }
        // An empty list of named items has no items and so no fields.
        (Shape::Object(_) | Shape::Items(..), _) => {}
        (Shape::Leaf, _) => found.insert(path),
    }
}
