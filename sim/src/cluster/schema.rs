//! What an API server knows of its types, cut down to what applies, patches and reads need.
//!
//! `schema/types.json` is written by `scripts/sim_schema.py` from the documents and Go types of the
//! Kubernetes version that the end-to-end tests run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// The type of a value.
#[derive(Debug)]
pub(super) enum Type {
    String,
    Integer,
    Number,
    Boolean,
    /// An amount; stored in one spelling.
    Quantity,
    IntOrString,
    /// Base64.
    Bytes,
    /// Whatever it is, it is one value.
    Any,
    /// An object with known fields.
    Struct {
        id: usize,
        is_atomic: bool,
    },
    /// An object with any keys.
    Map {
        item: Box<Type>,
        is_atomic: bool,
    },
    List {
        item: Box<Type>,
        kind: ListKind,
    },
}

/// How the items of a list are told apart.
#[derive(Debug)]
pub(super) enum ListKind {
    /// Not at all: the list is one value.
    Atomic,
    /// By their values.
    Set,
    /// By these fields.
    Keyed(Vec<Key>),
}

/// A field that tells items of a list apart.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    /// What an item without it has.
    pub(super) default: Option<Value>,
}

/// The fields of an object.
#[derive(Debug)]
pub(super) struct Struct {
    pub(super) fields: BTreeMap<String, Field>,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) of: Type,
    pub(super) presence: Presence,
    /// What a field of a custom kind has when it was not given.
    pub(super) default: Option<Value>,
}

/// When a field is in the stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Whenever it was given.
    Given,
    /// Unless it is zero, false or empty.
    Omitted,
    /// Always.
    Always,
    /// Whenever it was given; what was never written shows it as null.
    Null,
}

/// A kind of objects.
#[derive(Debug)]
pub(super) struct Kind {
    /// As in `kind:` of a manifest.
    pub(super) name: &'static str,
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) is_namespaced: bool,
    /// Whether its definition is itself an object of the cluster that can be removed.
    pub(super) is_custom: bool,
    pub(super) root: Type,
}

impl Kind {
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// As messages name it: `ReplicaSet.apps`.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.name, self.group)
        }
    }

    /// As messages name it: `replicasets.apps`.
    pub(super) fn qualified_plural(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// Every kind the cluster can have: name, group, version, plural, whether namespaced.
const KINDS: [(&str, &str, &str, &str, bool); 12] = [
    (
        "CiliumNetworkPolicy",
        "cilium.io",
        "v2",
        "ciliumnetworkpolicies",
        true,
    ),
    ("ConfigMap", "", "v1", "configmaps", true),
    ("Deployment", "apps", "v1", "deployments", true),
    (
        "HorizontalPodAutoscaler",
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        true,
    ),
    ("Lease", "coordination.k8s.io", "v1", "leases", true),
    ("Namespace", "", "v1", "namespaces", false),
    ("Pod", "", "v1", "pods", true),
    (
        "PodDisruptionBudget",
        "policy",
        "v1",
        "poddisruptionbudgets",
        true,
    ),
    ("ReplicaSet", "apps", "v1", "replicasets", true),
    ("Secret", "", "v1", "secrets", true),
    ("Service", "", "v1", "services", true),
    ("ServiceAccount", "", "v1", "serviceaccounts", true),
];

#[derive(Debug)]
pub(super) struct Schema {
    structs: Vec<Struct>,
    kinds: BTreeMap<&'static str, Kind>,
}

impl Schema {
    pub(super) fn fields_of(&self, id: usize) -> &Struct {
        &self.structs[id]
    }
}

#[derive(Deserialize)]
struct Document {
    kinds: BTreeMap<String, String>,
    types: BTreeMap<String, Definition>,
}

#[derive(Deserialize)]
struct Definition {
    fields: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    atomic: bool,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let document: Document = serde_json::from_str(include_str!("schema/types.json"))
        .unwrap_or_else(|error| unreachable!("types.json is generated: {error}"));
    let ids: BTreeMap<&str, (usize, bool)> = document
        .types
        .iter()
        .enumerate()
        .map(|(id, (name, definition))| (name.as_str(), (id, definition.atomic)))
        .collect();
    let reader = Reader {
        document: &document,
        ids: &ids,
    };
    let structs = document
        .types
        .values()
        .map(|definition| reader.fields(definition))
        .collect();
    let kinds = KINDS
        .into_iter()
        .map(|(name, group, version, plural, is_namespaced)| {
            let kind = Kind {
                name,
                group,
                version,
                plural,
                is_namespaced,
                is_custom: group == "cilium.io",
                root: reader.named(&document.kinds[name], false),
            };
            (name, kind)
        })
        .collect();
    Schema { structs, kinds }
});

struct Reader<'a> {
    document: &'a Document,
    ids: &'a BTreeMap<&'a str, (usize, bool)>,
}

impl Reader<'_> {
    fn named(&self, name: &str, is_atomic: bool) -> Type {
        let (id, always_atomic) = self.ids[name];
        Type::Struct {
            id,
            is_atomic: is_atomic || always_atomic,
        }
    }

    fn fields(&self, definition: &Definition) -> Struct {
        let fields = definition.fields.iter().map(|(name, entry)| {
            let presence = match entry.get(1).and_then(Value::as_str) {
                Some("always") => Presence::Always,
                Some("omitted") => Presence::Omitted,
                Some("null") => Presence::Null,
                _ => Presence::Given,
            };
            let of = self.of(&entry[0]);
            let default = entry.get(2).cloned();
            let field = Field {
                of,
                presence,
                default,
            };
            (name.clone(), field)
        });
        Struct {
            fields: fields.collect(),
        }
    }

    fn of(&self, entry: &Value) -> Type {
        let is_atomic = entry.get("a").is_some();
        if let Some(name) = entry.get("r").and_then(Value::as_str) {
            return self.named(name, is_atomic);
        }
        if let Some(item) = entry.get("m") {
            let item = Box::new(self.of(item));
            return Type::Map { item, is_atomic };
        }
        if let Some(item) = entry.get("l") {
            let kind = if let Some(keys) = entry.get("k").and_then(Value::as_array) {
                ListKind::Keyed(keys.iter().map(|key| self.key(item, key)).collect())
            } else if entry.get("u").is_some() {
                ListKind::Set
            } else {
                ListKind::Atomic
            };
            let item = Box::new(self.of(item));
            return Type::List { item, kind };
        }
        match entry.as_str() {
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            Some("quantity") => Type::Quantity,
            Some("intOrString") => Type::IntOrString,
            Some("bytes") => Type::Bytes,
            _ => Type::Any,
        }
    }

    fn key(&self, item: &Value, key: &Value) -> Key {
        let name = key.as_str().unwrap_or_default();
        let definition = item["r"]
            .as_str()
            .and_then(|name| self.document.types.get(name));
        let field = definition.and_then(|definition| definition.fields.get(name));
        Key {
            name: name.to_owned(),
            default: field.and_then(|entry| entry.get(2)).cloned(),
        }
    }
}

pub(super) fn schema() -> &'static Schema {
    &SCHEMA
}

/// The kind of this name; `None` when no cluster here ever has it.
pub(super) fn kind_named(name: &str) -> Option<&'static Kind> {
    SCHEMA.kinds.get(name)
}

#[cfg(test)]
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "any other type fails the test"
)]
mod tests {
    use super::*;

    fn field<'a>(of: &'a Type, path: &str) -> &'a Type {
        path.split('.').fold(of, |of, name| match of {
            Type::Struct { id, .. } => &schema().fields_of(*id).fields[name].of,
            Type::List { item, .. } | Type::Map { item, .. } => item,
            other => panic!("{other:?} has no {name}"),
        })
    }

    /// As `managedFields` of a real API server show it.
    #[test]
    fn lists_and_maps_are_of_the_measured_types() {
        let pod = "spec.template.spec";
        let root = &kind_named("ReplicaSet").unwrap().root;
        let of = |path: &str| field(root, &format!("{pod}.{path}"));
        for (path, keys) in [
            ("containers", &["name"][..]),
            ("containers.*.env", &["name"]),
            ("containers.*.ports", &["containerPort", "protocol"]),
            ("containers.*.volumeMounts", &["mountPath"]),
            (
                "topologySpreadConstraints",
                &["topologyKey", "whenUnsatisfiable"],
            ),
        ] {
            match of(path) {
                Type::List {
                    kind: ListKind::Keyed(found),
                    ..
                } => {
                    let found: Vec<_> = found.iter().map(|key| key.name.as_str()).collect();
                    assert_eq!(found, keys, "{path}");
                }
                other => panic!("{path}: {other:?}"),
            }
        }
        for path in [
            "tolerations",
            "containers.*.command",
            "containers.*.envFrom",
        ] {
            assert!(
                matches!(
                    of(path),
                    Type::List {
                        kind: ListKind::Atomic,
                        ..
                    }
                ),
                "{path}"
            );
        }
        assert!(matches!(
            field(root, "spec.selector"),
            Type::Struct {
                is_atomic: true,
                ..
            }
        ));
        assert!(matches!(
            of("nodeSelector"),
            Type::Map {
                is_atomic: true,
                ..
            }
        ));
    }
}
