//! A sentinel's pods that run in an earlier form.
//!
//! A Deployment rolls its pods when its template changes. A sentinel that runs as an earlier agent
//! or an earlier krane made it is left running like that until its turn comes or the control plane
//! wants something else of it: pods of many sentinels never restart at once because krane renders
//! them differently (D44).

use serde_json::{Value, json};

use super::form::EARLIER;
use super::template::template;
use super::{DesiredSentinel, state};
use crate::drift::{self, Difference, DifferenceKind};
use crate::kinds::{Keep, RENDERER, Rules};
use crate::labels;
use crate::object::{LiveObject, Rendered};

const TEMPLATE: &str = "spec.template";

/// The template in `rendered` is replaced by the live one, if that differs in form alone: it runs
/// what is wanted.
pub(super) fn keep_what_runs(
    rendered: &mut Rendered,
    desired: &DesiredSentinel,
    rules: &Rules,
    live: &LiveObject,
    keep: Keep,
) {
    let tree = live.value();
    let differences = drift::differences_below(rendered, &tree, TEMPLATE);
    if differences.is_empty() || keep == Keep::Nothing {
        return;
    }
    let mut kept = rendered.clone();
    let is_same = |kept: &mut Rendered, template: Value| {
        kept.body["spec"]["template"] = template;
        drift::differences_below(kept, &tree, TEMPLATE).is_empty()
    };
    let is_earlier_form = EARLIER
        .iter()
        .any(|form| is_same(&mut kept, template(desired, rules, form)));
    let is_form_alone = is_earlier_form
        || keep == Keep::EqualState
            && is_rendered_from_equal(desired, live, &tree, &differences)
            && drift::own_part(
                &tree,
                &live.reference.resource.api_version(),
                &["spec", "template"],
            )
            .is_some_and(|template| is_same(&mut kept, template));
    if is_form_alone {
        keep_annotations(&mut kept, live, &tree);
        kept.keeps_template = true;
        *rendered = kept;
    }
}

/// Whether the live template says what this state says, by the hash of the state it was rendered
/// from, and nobody touched it since.
fn is_rendered_from_equal(
    desired: &DesiredSentinel,
    live: &LiveObject,
    tree: &Value,
    differences: &[Difference],
) -> bool {
    let Some(renderer) = state::renderer_of_equal(desired, live, tree) else {
        return false;
    };
    // The present renderer writes the same fields whatever is set: one that is not krane's any more
    // was taken away by somebody.
    let is_whole = || {
        let mut kinds = differences.iter().map(|difference| difference.kind);
        kinds.all(|kind| kind == DifferenceKind::Value)
    };
    (renderer != RENDERER || is_whole())
        && !drift::is_foreign_below(live.reference.resource, tree, TEMPLATE)
}

/// What the Deployment says of its template stays with the template.
fn keep_annotations(kept: &mut Rendered, live: &LiveObject, tree: &Value) {
    let mut annotations = json!({});
    for key in [labels::RENDERER_ANNOTATION, labels::STATE_ANNOTATION] {
        let found = tree.pointer("/metadata/annotations");
        let found = found.and_then(|annotations| annotations.get(key));
        if let Some(found) = found.filter(|_| drift::owns(live, &["metadata", "annotations", key]))
        {
            annotations[key] = found.clone();
        }
    }
    let metadata = &mut kept.body["metadata"];
    if annotations == json!({}) {
        // An empty map would be something to own.
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("annotations");
        }
    } else {
        metadata["annotations"] = annotations;
    }
}
