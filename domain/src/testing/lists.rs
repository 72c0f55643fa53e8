//! Lists whose items an API server tells apart by keys.

use serde_json::Value;

/// The keys of every such list that is rendered, by the name of the list.
const KEYED: [(&str, &[&str]); 7] = [
    ("containers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("imagePullSecrets", &["name"]),
    ("ownerReferences", &["uid"]),
    (
        "topologySpreadConstraints",
        &["topologyKey", "whenUnsatisfiable"],
    ),
];

fn keys_of(list: &str, items: &[Value]) -> Option<&'static [&'static str]> {
    if list == "ports" {
        let of_container = items.iter().any(|item| item.get("containerPort").is_some());
        return Some(if of_container {
            &["containerPort", "protocol"]
        } else {
            &["port", "protocol"]
        });
    }
    let keyed = KEYED.iter().find(|(name, _)| *name == list);
    keyed.map(|(_, keys)| *keys)
}

/// Panics where an item of such a list lacks a key or has those of another one, and where a field
/// is null.
pub(crate) fn check_lists(value: &Value) {
    if let Value::Object(map) = value {
        for (name, child) in map {
            assert!(!child.is_null(), "{name} is null");
            let items = child.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(keys) = keys_of(name, items).filter(|_| child.is_array()) {
                check(name, keys, items);
            }
            check_lists(child);
        }
    }
    value.as_array().into_iter().flatten().for_each(check_lists);
}

fn check(name: &str, keys: &[&str], items: &[Value]) {
    assert!(!items.is_empty(), "{name} is empty");
    let of = |item: &Value| -> Vec<Value> {
        keys.iter()
            .map(|key| item.get(*key).cloned())
            .map(|key| key.unwrap_or_else(|| panic!("a key is missing in {item} of {name}")))
            .collect()
    };
    let all: Vec<_> = items.iter().map(of).collect();
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one), "{name} holds {one:?} twice");
    }
}
