//! Taking over what others own in the exclusive parts of an object (D11a).
//!
//! Measured: once krane owns the fields, its next apply removes what it does not render, also
//! where a plain apply is refused because it would leave both halves of a union behind. Removing
//! the fields themselves does not do: a default that is removed comes back as owned by the patch.

use serde_json::{Map, Value, json};

use super::compare::is_own;
use super::foreign::{below, exclusive, is_exempt};
use crate::labels;
use crate::object::Resource;

/// `metadata.managedFields` with everything in exclusive parts that others own moved to krane's
/// own entry; `None` when nobody else owns anything there.
///
/// Takes the list as the API server has it. Entries of subresources are kept as they are.
pub fn adopted(resource: Resource, managed_fields: &[Value]) -> Option<Vec<Value>> {
    let mut taken = Map::new();
    let mut entries = Vec::new();
    for entry in managed_fields {
        let mut entry = entry.clone();
        let is_foreign = !is_own(&entry) && !is_of_subresource(&entry);
        let fields = entry.get_mut("fieldsV1").and_then(Value::as_object_mut);
        if let Some(fields) = fields.filter(|_| is_foreign) {
            for part in exclusive(resource) {
                let name = format!("f:{part}");
                let Some(node) = fields.remove(&name) else {
                    continue;
                };
                let (exempt, node) = split(resource, part, node);
                if let Some(exempt) = exempt {
                    fields.insert(name.clone(), exempt);
                }
                if let Some(node) = node {
                    merge(taken.entry(name).or_insert_with(|| json!({})), node);
                }
            }
            if fields.is_empty() {
                continue;
            }
        }
        entries.push(entry);
    }
    if taken.is_empty() {
        return None;
    }
    let api_version = Value::from(resource.api_version());
    let own = entries
        .iter()
        .position(|entry| is_own(entry) && entry.get("apiVersion") == Some(&api_version));
    let own = own.unwrap_or_else(|| {
        entries.push(json!({
            "manager": labels::MANAGER,
            "operation": "Apply",
            "apiVersion": api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
        }));
        entries.len() - 1
    });
    merge(&mut entries[own]["fieldsV1"], Value::Object(taken));
    Some(entries)
}

fn is_of_subresource(entry: &Value) -> bool {
    let subresource = entry.get("subresource").and_then(Value::as_str);
    subresource.is_some_and(|name| !name.is_empty())
}

/// What stays with its owner, and what is taken.
fn split(resource: Resource, path: &str, node: Value) -> (Option<Value>, Option<Value>) {
    if is_exempt(resource, path) {
        return (Some(node), None);
    }
    let Value::Object(parts) = node else {
        return (None, Some(node));
    };
    if parts.keys().all(|name| name == ".") {
        return (None, Some(Value::Object(parts)));
    }
    let (mut exempt, mut taken) = (Map::new(), Map::new());
    for (name, node) in parts {
        let (stays, goes) = if name == "." {
            (None, Some(node))
        } else {
            split(resource, &below(path, &name), node)
        };
        if let Some(stays) = stays {
            exempt.insert(name.clone(), stays);
        }
        if let Some(goes) = goes {
            taken.insert(name, goes);
        }
    }
    // That the parent exists says nothing of its own.
    let is_something = taken.keys().any(|name| name != ".");
    let value = |parts: Map<String, Value>| (!parts.is_empty()).then_some(Value::Object(parts));
    (value(exempt), is_something.then_some(Value::Object(taken)))
}

/// The union of two trees of fields.
fn merge(into: &mut Value, from: Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else {
        return;
    };
    for (key, node) in from {
        merge(into.entry(key).or_insert_with(|| json!({})), node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn foreign_fields_move_to_kranes_entry_and_nothing_else_changes() {
        let own = entry(
            "krane",
            "Apply",
            &json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:a": {}}}}}),
        );
        let edit = entry(
            "kubectl-edit",
            "Update",
            &json!({"f:metadata": {"f:labels": {"f:team": {}}},
                "f:spec": {"f:template": {"f:spec": {"f:hostNetwork": {}}}}}),
        );
        let whole = entry("other", "Apply", &json!({"f:spec": {"f:paused": {}}}));
        let mut status = entry("rs", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        status["subresource"] = json!("scale");
        let adopted = adopted(Resource::ReplicaSet, &[own, edit, whole, status.clone()]);
        let expected = [
            entry(
                "krane",
                "Apply",
                &json!({"f:spec": {"f:replicas": {}, "f:paused": {},
                    "f:template": {"f:spec": {"f:a": {}, "f:hostNetwork": {}}}}}),
            ),
            entry(
                "kubectl-edit",
                "Update",
                &json!({"f:metadata": {"f:labels": {"f:team": {}}}}),
            ),
            status,
        ];
        assert_eq!(adopted, Some(expected.to_vec()));
    }

    /// unkeyed/unkey deployments of sentinels: a rotated Secret rolls them by such fields.
    #[test]
    fn what_rolls_the_pods_of_a_deployment_stays_with_whoever_put_it_there() {
        let fields = json!({"f:spec": {"f:template": {
            "f:metadata": {"f:annotations": {
                "f:kubectl.kubernetes.io/restartedAt": {}, "f:team": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"sentinel\"}": {"f:env": {
                "k:{\"name\":\"STAKATER_DATABASE_SECRET\"}": {".": {}, "f:name": {}, "f:value": {}},
                "k:{\"name\":\"DEBUG\"}": {".": {}, "f:name": {}, "f:value": {}}}}}}}}});
        let adopted = adopted(
            Resource::Deployment,
            &[entry("reloader", "Update", &fields)],
        );
        let left = json!({"f:spec": {"f:template": {
            "f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"sentinel\"}": {"f:env": {
                "k:{\"name\":\"STAKATER_DATABASE_SECRET\"}":
                    {".": {}, "f:name": {}, "f:value": {}}}}}}}}});
        let taken = json!({"f:spec": {"f:template": {
            "f:metadata": {"f:annotations": {"f:team": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"sentinel\"}": {"f:env": {
                "k:{\"name\":\"DEBUG\"}": {".": {}, "f:name": {}, "f:value": {}}}}}}}}});
        let expected = [
            entry("reloader", "Update", &left),
            entry("krane", "Apply", &taken),
        ];
        assert_eq!(adopted, Some(expected.to_vec()));
    }

    #[test]
    fn without_an_entry_of_its_own_krane_gets_one() {
        let wiped = entry(
            "before-first-apply",
            "Update",
            &json!({"f:spec": {"f:a": {}}}),
        );
        let adopted = adopted(Resource::ReplicaSet, &[wiped]);
        let expected = entry("krane", "Apply", &json!({"f:spec": {"f:a": {}}}));
        assert_eq!(adopted, Some(vec![expected]));
    }

    #[test]
    fn what_others_own_elsewhere_is_left_to_them() {
        let edit = entry("x", "Update", &json!({"f:metadata": {}, "f:status": {}}));
        assert_eq!(adopted(Resource::ReplicaSet, &[edit]), None);
        let spec = entry("x", "Update", &json!({"f:spec": {"f:finalizers": {}}}));
        assert_eq!(adopted(Resource::Namespace, &[spec]), None);
    }
}
