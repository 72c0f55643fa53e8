//! Rendered against live, with krane's own managed fields as the only schema.
//!
//! Ownership alone finds every change somebody else made to a field of krane's; values alone find
//! what krane wants anew, what admission rewrote and what was reordered. Both are needed.

mod keyed;
mod own;
mod values;

use std::borrow::Cow;

pub(super) use keyed::item_text;
pub(crate) use own::own_part;
use serde_json::{Map, Value};

use super::difference::{Difference, DifferenceKind, Step};
use crate::labels;
use crate::object::{Rendered, Resource, conceal};

/// Everything in which a live object is not as rendered, in a fixed order.
pub(super) fn differences(rendered: &Rendered, live: &Value) -> Vec<Difference> {
    let body = comparable(rendered);
    let mut walk = Walk {
        resource: rendered.reference.resource,
        steps: Vec::new(),
        differences: Vec::new(),
    };
    let api_version = rendered.reference.resource.api_version();
    let Some(fields) = own_fields(live, &api_version) else {
        walk.report(DifferenceKind::RenderedNotOwned, None, None);
        return walk.differences;
    };
    walk.node(&body, Owned::Parts(fields), Some(live));
    let mut differences = walk.differences;
    differences.sort_by(|one, other| (&one.path, one.kind).cmp(&(&other.path, other.kind)));
    differences
}

/// The body in the form in which live content is kept.
fn comparable(rendered: &Rendered) -> Cow<'_, Value> {
    if rendered.reference.resource != Resource::Secret {
        return Cow::Borrowed(&rendered.body);
    }
    let mut body = rendered.body.clone();
    conceal(Resource::Secret, &mut body);
    Cow::Owned(body)
}

/// The fields that krane owns by apply; of several versions the one that is rendered.
pub(super) fn own_fields<'a>(live: &'a Value, api_version: &str) -> Option<&'a Map<String, Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let own = || entries.iter().filter(|entry| is_own(entry));
    own()
        .find(|entry| entry.get("apiVersion").and_then(Value::as_str) == Some(api_version))
        .or_else(|| own().next())?
        .get("fieldsV1")?
        .as_object()
}

/// Whether a managedFields entry is the one of krane's applies.
pub(super) fn is_own(entry: &Value) -> bool {
    let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    text("manager") == labels::MANAGER
        && text("operation") == "Apply"
        && text("subresource").is_empty()
}

/// A node of the owned fields.
#[derive(Clone, Copy)]
enum Owned<'f> {
    /// Not owned.
    No,
    /// Owned as a whole: a scalar, something atomic or something empty.
    Whole,
    /// Owned in parts.
    Parts(&'f Map<String, Value>),
}

impl<'f> Owned<'f> {
    fn of(node: Option<&'f Value>) -> Self {
        let Some(node) = node else { return Self::No };
        match node.as_object() {
            Some(parts) if parts.keys().any(|key| key != ".") => Self::Parts(parts),
            Some(_) | None => Self::Whole,
        }
    }
}

/// A walk through rendered, owned and live together.
struct Walk<'a> {
    resource: Resource,
    steps: Vec<Step<'a>>,
    differences: Vec<Difference>,
}

impl<'a> Walk<'a> {
    fn report(&mut self, kind: DifferenceKind, wanted: Option<&Value>, live: Option<&Value>) {
        self.differences
            .push(Difference::new(&self.steps, kind, wanted, live));
    }

    fn at(&mut self, step: Step<'a>, visit: impl FnOnce(&mut Self)) {
        self.steps.push(step);
        visit(self);
        self.steps.pop();
    }

    fn node(&mut self, rendered: &'a Value, owned: Owned<'a>, live: Option<&'a Value>) {
        match (owned, rendered) {
            (Owned::No, _) => self.not_owned(rendered, live),
            (Owned::Whole, _) => self.value(rendered, live),
            (Owned::Parts(parts), Value::Object(map)) => self.object(map, parts, live),
            (Owned::Parts(parts), Value::Array(items)) => self.keyed(items, parts, live),
            (
                Owned::Parts(_),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
            ) => self.report(DifferenceKind::Value, Some(rendered), live),
        }
    }

    fn object(
        &mut self,
        rendered: &'a Map<String, Value>,
        parts: &'a Map<String, Value>,
        live: Option<&'a Value>,
    ) {
        for (key, value) in rendered {
            if value.is_null() || self.is_identity(key) {
                continue;
            }
            let owned = Owned::of(parts.get(&format!("f:{key}")));
            let live = live.and_then(|live| live.get(key));
            self.at(Step::Key(key), |walk| walk.node(value, owned, live));
        }
        for name in parts.keys().filter(|name| *name != ".") {
            let key = name.strip_prefix("f:").unwrap_or(name);
            if rendered.get(key).is_none_or(Value::is_null) {
                let live = live.and_then(|live| live.get(key));
                self.at(Step::Key(key), |walk| {
                    walk.report(DifferenceKind::OwnedNotRendered, None, live);
                });
            }
        }
    }

    /// Reports what is wanted leaf by leaf.
    fn not_owned(&mut self, rendered: &'a Value, live: Option<&'a Value>) {
        match rendered {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    if value.is_null() || self.is_identity(key) {
                        continue;
                    }
                    let live = live.and_then(|live| live.get(key));
                    self.at(Step::Key(key), |walk| walk.not_owned(value, live));
                }
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => {
                self.report(DifferenceKind::RenderedNotOwned, Some(rendered), live);
            }
        }
    }

    /// What names an object is owned by nobody.
    fn is_identity(&self, key: &str) -> bool {
        match self.steps.as_slice() {
            [] => matches!(key, "apiVersion" | "kind"),
            [Step::Key("metadata")] => {
                matches!(key, "name" | "namespace" | "uid" | "resourceVersion")
            }
            _ => false,
        }
    }
}
