//! What a fresh cluster holds: the things krane expects to find and never makes itself.

use std::{fs, path::Path};

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{Error, Options};

/// Who owns the fields of what this crate applies.
pub(crate) const FIELD_MANAGER: &str = "krane-testcluster";
/// The zones that nodes are spread over.
pub const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// krane's own namespace, and the name of its ServiceAccount there.
pub const KRANE: &str = "krane";
/// The user name of krane's ServiceAccount, as the audit log has it.
pub const KRANE_USER: &str = "system:serviceaccount:krane:krane";

/// The two groups of nodes: name, key of label and taint, value.
const POOLS: [(&str, &str, &str); 2] = [
    ("untrusted", "karpenter.sh/nodepool", "untrusted"),
    ("sentinel", "node-class", "sentinel"),
];

/// Makes everything; the nodes only when somebody plays them.
pub(crate) async fn create(
    client: &Client,
    options: &Options,
    cilium_crd: &Path,
) -> Result<(), Error> {
    if options.cilium {
        for crd in read_manifests(cilium_crd)? {
            apply(client, cilium_crd, crd).await?;
        }
    }
    let builtin = Path::new("(built in)");
    for object in base_objects() {
        apply(client, builtin, object).await?;
    }
    if options.kwok {
        for index in 0..options.nodes {
            for (number, pool) in (0..).zip(POOLS) {
                create_node(client, &node(number, pool, index)).await?;
            }
        }
    }
    Ok(())
}

fn base_objects() -> [Value; 5] {
    [
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sentinel"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KRANE}}),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "database", "namespace": "sentinel"},
            "stringData": {"UNKEY_DATABASE_PRIMARY": "mysql://user:password@mysql.example:3306/unkey"},
        }),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": KRANE, "namespace": KRANE}}),
    ]
}

/// A node with room for every test; its pods get addresses of a /16 of its own.
fn node(pool_number: u16, (pool, key, value): (&str, &str, &str), index: u16) -> Value {
    let name = format!("{pool}-{index}");
    let zone = ZONES[usize::from(index) % ZONES.len()];
    let subnet = format!("10.{}.0.0/16", 1 + (pool_number * 100 + index) % 249);
    let room = json!({"cpu": "1k", "memory": "8Ti", "ephemeral-storage": "8Ti", "pods": "20k"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                key: value,
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": zone,
            },
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {
            "podCIDR": subnet,
            "podCIDRs": [subnet],
            "taints": [{"key": key, "value": value, "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "kwok", "kubeProxyVersion": "kwok",
                "bootID": "", "machineID": "", "systemUUID": "", "kernelVersion": "", "osImage": "",
                "containerRuntimeVersion": "",
            },
        },
    })
}

/// Created, not applied: an apply would lose the status.
async fn create_node(client: &Client, node: &Value) -> Result<(), Error> {
    let what = || format!("create node {}", node["metadata"]["name"]);
    let node: Node = serde_json::from_value(node.clone()).map_err(|error| Error::Request {
        what: what(),
        source: kube::Error::SerdeError(error),
    })?;
    Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &node)
        .await
        .map(drop)
        .map_err(|source| Error::Request {
            what: what(),
            source,
        })
}

/// All documents of a YAML file that are not empty.
pub(crate) fn read_manifests(path: &Path) -> Result<Vec<Value>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Files {
        path: path.to_owned(),
        source,
    })?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|source| Error::Manifest {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

/// Server-side apply of one manifest; `origin` is for messages.
pub(crate) async fn apply(client: &Client, origin: &Path, manifest: Value) -> Result<(), Error> {
    let field = |pointer: &str, field: &'static str| {
        manifest
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| Error::ManifestField {
                path: origin.to_owned(),
                field,
            })
    };
    let api_version = field("/apiVersion", "apiVersion")?;
    let kind = field("/kind", "kind")?;
    let name = field("/metadata/name", "metadata.name")?;
    let namespace = field("/metadata/namespace", "metadata.namespace").ok();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(
        &name,
        &PatchParams::apply(FIELD_MANAGER).force(),
        &Patch::Apply(&manifest),
    )
    .await
    .map(drop)
    .map_err(|source| Error::Request {
        what: format!("apply {kind} {name}"),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nodes_cover_the_zones_and_their_subnets_differ() {
        let nodes: Vec<Value> = (0..POOLS.len())
            .flat_map(|pool| {
                (0..6).map(move |index| node(u16::try_from(pool).unwrap(), POOLS[pool], index))
            })
            .collect();
        let all = |pointer: &str| -> BTreeSet<String> {
            nodes
                .iter()
                .map(|node| node.pointer(pointer).unwrap().to_string())
                .collect()
        };
        assert_eq!(all("/spec/podCIDR").len(), nodes.len());
        assert_eq!(
            all("/metadata/labels/topology.kubernetes.io~1zone").len(),
            ZONES.len()
        );
    }

    #[test]
    fn empty_documents_are_left_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "---\n# nothing\n---\na: 1\n---\nb: 2\n").unwrap();
        assert_eq!(read_manifests(file.path()).unwrap().len(), 2);
    }
}
