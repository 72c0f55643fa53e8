//! Others that own fields where only krane should (D11a).

use serde_json::{Map, Value};

use super::compare::{is_own, item_text};
use super::difference::{Difference, DifferenceKind, join};
use crate::object::Resource;

/// Another manager that owns something where only krane should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Field manager.
    pub manager: String,
    /// The paths it owns there, in the notation of [`super::Difference::path`].
    pub paths: Vec<String>,
}

/// The parts of an object in which nobody else may own anything.
pub(super) const fn exclusive(resource: Resource) -> &'static [&'static str] {
    match resource {
        Resource::ReplicaSet
        | Resource::Deployment
        | Resource::Service
        | Resource::PodDisruptionBudget
        | Resource::HorizontalPodAutoscaler => &["spec"],
        Resource::CiliumNetworkPolicy => &["spec", "specs"],
        Resource::Secret => &["data"],
        Resource::Namespace | Resource::Pod => &[],
    }
}

/// Whether something in an exclusive part is somebody else's after all: what rolls the pods of a
/// Deployment when a Secret they read has changed, or when a person asks for it (D11a).
pub(super) fn is_exempt(resource: Resource, path: &str) -> bool {
    const ANNOTATIONS: &str = "spec.template.metadata.annotations[\"";
    if resource != Resource::Deployment {
        return false;
    }
    if let Some(annotation) = path.strip_prefix(ANNOTATIONS) {
        return annotation.starts_with("kubectl.kubernetes.io/restartedAt\"")
            || annotation.starts_with("reloader.stakater.com/");
    }
    let container = path.strip_prefix("spec.template.spec.containers[");
    let variable = container.and_then(|rest| rest.split_once("].env[name="));
    variable.is_some_and(|(_, name)| name.starts_with("STAKATER_"))
}

/// Who owns what in the exclusive parts of a live object.
pub(super) fn foreign(resource: Resource, live: &Value) -> Vec<Foreign> {
    let entries = live
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter(|entry| !is_own(entry))
        .filter_map(|entry| {
            let fields = entry.get("fieldsV1")?;
            let mut paths = Vec::new();
            for part in exclusive(resource) {
                if let Some(node) = fields.get(format!("f:{part}")) {
                    leaves(part, node, &mut paths);
                }
            }
            paths.retain(|path| !is_exempt(resource, path));
            let manager = entry
                .get("manager")
                .and_then(Value::as_str)
                .unwrap_or_default();
            (!paths.is_empty()).then(|| Foreign {
                manager: manager.to_owned(),
                paths,
            })
        })
        .collect()
}

/// What a forced apply that undoes these differences would leave behind: it takes every field that
/// it changes from whoever owns it.
pub(super) fn beyond(foreign: Vec<Foreign>, differences: &[Difference]) -> Vec<Foreign> {
    let is_taken = |path: &String| {
        differences.iter().any(|difference| {
            // What is owned as a whole is taken as a whole.
            is_within(&difference.path, path)
                && matches!(
                    difference.kind,
                    DifferenceKind::RenderedNotOwned | DifferenceKind::Value
                )
        })
    };
    let beyond = foreign
        .into_iter()
        .map(|Foreign { manager, paths }| Foreign {
            manager,
            paths: paths.into_iter().filter(|path| !is_taken(path)).collect(),
        });
    beyond.filter(|foreign| !foreign.paths.is_empty()).collect()
}

/// Whether `path` is `whole` or a part of it.
pub(super) fn is_within(path: &str, whole: &str) -> bool {
    let below = path.strip_prefix(whole);
    below.is_some_and(|below| whole.is_empty() || below.is_empty() || below.starts_with(['.', '[']))
}

fn leaves(path: &str, node: &Value, paths: &mut Vec<String>) {
    let empty = Map::new();
    let parts = node.as_object().unwrap_or(&empty);
    if parts.keys().all(|name| name == ".") {
        paths.push(path.to_owned());
    }
    for (name, node) in parts.iter().filter(|(name, _)| *name != ".") {
        leaves(&below(path, name), node, paths);
    }
}

/// The path of a field, by the name that managed fields give it in its parent.
pub(super) fn below(path: &str, name: &str) -> String {
    match (name.strip_prefix("f:"), item_text(name)) {
        (Some(key), _) => join(path, key),
        (None, Some(keys)) => format!("{path}[{keys}]"),
        (None, None) => join(path, name),
    }
}
