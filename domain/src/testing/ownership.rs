//! Which fields an apply owns: computed from what was sent, before defaults.

use serde_json::{Map, Value, json};

/// How the API server treats a field of what krane renders, as its `managedFields` show.
enum Shape {
    /// Field by field.
    Granular,
    /// As one value.
    Atomic,
    /// Item by item, by these keys; `true` for items that are one value.
    Keyed(&'static [&'static str], bool),
}

fn shape(parent: &str, key: &str) -> Shape {
    match (parent, key) {
        (_, "containers" | "initContainers" | "env" | "volumes") => Shape::Keyed(&["name"], false),
        (_, "imagePullSecrets") => Shape::Keyed(&["name"], true),
        (_, "ownerReferences") => Shape::Keyed(&["uid"], true),
        ("containers", "ports") => Shape::Keyed(&["containerPort", "protocol"], false),
        ("spec", "ports") => Shape::Keyed(&["port", "protocol"], false),
        (_, "volumeMounts") => Shape::Keyed(&["mountPath"], false),
        (_, "topologySpreadConstraints") => {
            Shape::Keyed(&["topologyKey", "whenUnsatisfiable"], false)
        }
        (
            _,
            "selector"
            | "labelSelector"
            | "endpointSelector"
            | "nodeSelector"
            | "tolerations"
            | "command"
            | "args"
            | "envFrom"
            | "preferredDuringSchedulingIgnoredDuringExecution"
            | "requiredDuringSchedulingIgnoredDuringExecution"
            | "fieldRef"
            | "secretKeyRef"
            | "configMapKeyRef"
            | "sources"
            | "httpHeaders"
            | "ingress"
            | "egress"
            | "specs"
            | "metrics"
            | "policies"
            | "accessModes",
        ) => Shape::Atomic,
        _ => Shape::Granular,
    }
}

/// The `fieldsV1` of an apply of this body.
pub fn fields_of(body: &Value) -> Value {
    let mut fields = granular("", body);
    for key in ["f:apiVersion", "f:kind"] {
        fields.remove(key);
    }
    if let Some(Value::Object(metadata)) = fields.get_mut("f:metadata") {
        for key in ["f:name", "f:namespace", "f:uid", "f:resourceVersion"] {
            metadata.remove(key);
        }
        if metadata.is_empty() {
            fields.remove("f:metadata");
        }
    }
    Value::Object(fields)
}

fn granular(key: &str, value: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    for (child, value) in value.as_object().into_iter().flatten() {
        match (shape(key, child), value) {
            // An empty keyed list owns nothing.
            (Shape::Keyed(..), Value::Array(items)) if items.is_empty() => {}
            (Shape::Keyed(keys, is_atomic), Value::Array(items)) => {
                let names = items.iter().map(|item| {
                    let mut parts = if is_atomic {
                        Map::new()
                    } else {
                        granular(child, item)
                    };
                    if !is_atomic {
                        parts.insert(".".to_owned(), json!({}));
                    }
                    (name(keys, item), Value::Object(parts))
                });
                fields.insert(format!("f:{child}"), Value::Object(names.collect()));
            }
            (Shape::Granular, Value::Object(_)) => {
                fields.insert(format!("f:{child}"), Value::Object(granular(child, value)));
            }
            _ => {
                fields.insert(format!("f:{child}"), json!({}));
            }
        }
    }
    fields
}

fn name(keys: &[&str], item: &Value) -> String {
    let keys: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let value = item.get(key).cloned();
            ((*key).to_owned(), value.unwrap_or_else(|| json!("TCP")))
        })
        .collect();
    format!("k:{}", Value::Object(keys))
}
