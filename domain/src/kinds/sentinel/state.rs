//! What the pod template of a Deployment was rendered from (D44).
//!
//! A template that is rendered otherwise today rolls every pod. Whether the control plane asked for
//! that is told by a hash of what it said when the template was written.

use serde_json::{Map, Value};

use super::DesiredSentinel;
use crate::canonical;
use crate::drift;
use crate::kinds::RENDERER;
use crate::labels;
use crate::object::LiveObject;

/// A field of a state: its name in the protocol, and its value.
type Field = (&'static str, fn(&DesiredSentinel) -> Value);

/// What the templates of renderers 1 and 2 read. The number of pods is none of it: it is said
/// beside the template, so that another number alone rolls nothing.
const FIRST: &[Field] = &[
    ("workspace_id", |it| text(&it.workspace_id)),
    ("project_id", |it| text(&it.project_id)),
    ("app_id", |it| text(&it.app_id)),
    ("environment_id", |it| text(&it.environment_id)),
    ("sentinel_id", |it| text(&it.sentinel_id)),
    ("image", |it| text(&it.image)),
    ("cpu_millicores", |it| it.cpu_millicores.into()),
    ("memory_mib", |it| it.memory_mib.into()),
];

fn text(value: &str) -> Value {
    Value::from(value)
}

/// What the template of each renderer reads. One whose template reads other fields gets a list of
/// its own, and those before it keep theirs.
const LISTS: [(&str, &[Field]); 2] = [("1", FIRST), (RENDERER, FIRST)];

/// What the template of this renderer reads. Of one that is newer than this krane the present list
/// is taken: what it reads beyond has its default in a state that does not say it.
fn read_by(renderer: &str) -> &'static [Field] {
    let [.., (_, present)] = LISTS;
    let known = LISTS.iter().find(|(number, _)| *number == renderer);
    known.map_or(present, |(_, fields)| fields)
}

/// The hash of a state as the present renderer reads it.
pub(super) fn hash(desired: &DesiredSentinel) -> String {
    hash_of(desired, read_by(RENDERER))
}

/// Defaults are left out: a field that is new changes the hash only where it is used.
fn hash_of(desired: &DesiredSentinel, fields: &[Field]) -> String {
    let values = fields.iter().map(|(name, value)| (name, value(desired)));
    let said: Map<String, Value> = values
        .filter(|(_, value)| *value != "" && *value != 0)
        .map(|(name, value)| ((*name).to_owned(), value))
        .collect();
    canonical::hex(&Value::Object(said), 32)
}

/// The number of the renderer that made the live template, if the template was rendered from a
/// state equal to this one. Only krane's own word counts.
pub(super) fn renderer_of_equal<'a>(
    desired: &DesiredSentinel,
    live: &LiveObject,
    tree: &'a Value,
) -> Option<&'a str> {
    let annotations = tree.pointer("/metadata/annotations")?;
    let own = |key: &str| {
        let is_own = drift::owns(live, &["metadata", "annotations", key]);
        annotations.get(key)?.as_str().filter(|_| is_own)
    };
    let renderer = own(labels::RENDERER_ANNOTATION)?;
    let stored = own(labels::STATE_ANNOTATION)?;
    (stored == hash_of(desired, read_by(renderer))).then_some(renderer)
}
