//! Who owns which fields of an object: `metadata.managedFields`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::field_set::FieldSet;

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// By server-side applies.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who owns something: one entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) operation: Operation,
    pub(super) name: Arc<str>,
    pub(super) api_version: Arc<str>,
    /// `status`, `scale`, or empty.
    pub(super) subresource: Arc<str>,
}

/// What a manager owns, and since when exactly that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) time: Arc<str>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managers(pub(super) BTreeMap<Manager, Owned>);

impl Managers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fields_of(&self, manager: &Manager) -> Option<&FieldSet> {
        self.0.get(manager).map(|owned| &owned.fields)
    }

    /// Makes a manager own exactly this, and nothing at all when it is empty.
    pub(super) fn set(&mut self, manager: &Manager, fields: FieldSet, now: &Arc<str>) {
        if fields.is_empty() {
            self.0.remove(manager);
        } else if self.fields_of(manager) != Some(&fields) {
            let time = Arc::clone(now);
            self.0.insert(manager.clone(), Owned { fields, time });
        }
    }

    /// Takes fields away from everybody but one manager.
    pub(super) fn take_from_others(&mut self, manager: &Manager, fields: &FieldSet) {
        if fields.is_empty() {
            return;
        }
        self.0.retain(|other, owned| {
            if other != manager && !owned.fields.intersection(fields).is_empty() {
                owned.fields = owned.fields.difference(fields);
            }
            !owned.fields.is_empty()
        });
    }

    pub(super) fn same_fields(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((a, mine), (b, theirs))| a == b && mine.fields == theirs.fields)
    }

    /// As `managedFields`: applies first, then by time.
    pub(super) fn to_json(&self) -> Value {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(manager, owned)| {
            (
                manager.operation,
                Arc::clone(&owned.time),
                Arc::clone(&manager.name),
            )
        });
        let entries = entries.into_iter().map(|(manager, owned)| {
            let mut entry = json!({
                "manager": &*manager.name,
                "operation": manager.operation.name(),
                "apiVersion": &*manager.api_version,
                "time": &*owned.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": owned.fields.to_json(),
            });
            if !manager.subresource.is_empty() {
                entry["subresource"] = json!(&*manager.subresource);
            }
            entry
        });
        Value::Array(entries.collect())
    }

    /// From `managedFields`; `None` when an entry is none.
    pub(super) fn from_json(entries: &[Value]) -> Option<Self> {
        let entries = entries.iter().map(|entry| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str);
            let manager = Manager {
                operation: match text("operation")? {
                    "Apply" => Operation::Apply,
                    "Update" => Operation::Update,
                    _ => return None,
                },
                name: text("manager").unwrap_or_default().into(),
                api_version: text("apiVersion")?.into(),
                subresource: text("subresource").unwrap_or_default().into(),
            };
            let owned = Owned {
                fields: FieldSet::from_json(entry.get("fieldsV1")?),
                time: text("time").unwrap_or_default().into(),
            };
            Some((manager, owned))
        });
        entries.collect::<Option<_>>().map(Self)
    }
}
