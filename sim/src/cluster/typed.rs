//! Values of a known type: checked, merged, compared and cut, as server-side apply does it.

mod check;
mod compare;
mod fields;
mod merge;
mod remove;

use serde_json::{Map, Value};

pub(super) use check::{Problem, check};
pub(super) use compare::compare;
pub(super) use fields::fields;
pub(super) use merge::merge;
pub(super) use remove::remove;

use super::schema::{Key, ListKind, Type, schema};

/// A value of any shape, by its type: what is below it or that it is one value.
enum Shape<'a> {
    Leaf,
    Object(Children<'a>),
    Items(&'a Type, Naming<'a>),
}

/// The types of an object's fields.
#[derive(Clone, Copy)]
enum Children<'a> {
    Struct(usize),
    Map(&'a Type),
}

impl<'a> Children<'a> {
    /// The type of a field, and whether it is declared.
    fn of(self, name: &str) -> (Option<&'a Type>, bool) {
        match self {
            Self::Struct(id) => {
                let field = schema().fields_of(id).fields.get(name);
                (field.map(|field| &field.of), field.is_some())
            }
            Self::Map(item) => (Some(item), false),
        }
    }
}

/// How items of a list are named.
#[derive(Clone, Copy)]
enum Naming<'a> {
    Keys(&'a [Key]),
    Value,
}

impl Naming<'_> {
    /// The item's step in a path; `None` when it has no name.
    fn step(self, item: &Value) -> Option<Box<str>> {
        match self {
            Self::Keys(keys) => {
                let object = item.as_object()?;
                let mut named = Map::new();
                for key in keys {
                    if let Some(value) = object.get(&key.name).or(key.default.as_ref()) {
                        named.insert(key.name.clone(), value.clone());
                    }
                }
                (!named.is_empty()).then(|| format!("k:{}", Value::Object(named)).into())
            }
            Self::Value => {
                let is_scalar = !item.is_object() && !item.is_array() && !item.is_null();
                is_scalar.then(|| format!("v:{item}").into())
            }
        }
    }
}

fn shape(of: &Type) -> Shape<'_> {
    match of {
        Type::Struct {
            id,
            is_atomic: false,
        } => Shape::Object(Children::Struct(*id)),
        Type::Map {
            item,
            is_atomic: false,
        } => Shape::Object(Children::Map(item)),
        Type::List {
            item,
            kind: ListKind::Keyed(keys),
        } => Shape::Items(item, Naming::Keys(keys)),
        Type::List {
            item,
            kind: ListKind::Set,
        } => Shape::Items(item, Naming::Value),
        Type::String
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Quantity
        | Type::IntOrString
        | Type::Bytes
        | Type::Any
        | Type::Struct { .. }
        | Type::Map { .. }
        | Type::List { .. } => Shape::Leaf,
    }
}

fn field_step(name: &str) -> Box<str> {
    format!("f:{name}").into()
}

/// Absent, null, an empty list or an empty object.
fn is_nothing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}
