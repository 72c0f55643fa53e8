//! What an API server fills in of a Service when it is stored: its addresses and node ports, and
//! what hangs on its type.

use serde_json::{Value, json};

use super::defaults::{default, is_open_to_others, items};
use super::world::World;

/// Completes a Service that is created, or that takes the place of an old one.
pub(super) fn prepare(world: &mut World, new: &mut Value, old: Option<&Value>) {
    let new = &mut new["spec"];
    if let Some(old) = old.map(|old| &old["spec"]) {
        keep_allocated(new, old);
        match_addresses(new, old);
        allocate(world, new);
        drop_what_no_longer_applies(new, old);
    } else {
        default_addresses(new);
        allocate(world, new);
    }
}

/// A client need not repeat what was allocated for it.
fn keep_allocated(new: &mut Value, old: &Value) {
    if has_address(old) && has_address(new) {
        for field in ["clusterIP", "clusterIPs"] {
            if is_empty(&new[field]) && !is_empty(&old[field]) {
                new[field] = old[field].clone();
            }
        }
    }
    if has_node_port(old) && has_node_port(new) {
        let known: Vec<_> = ports(old).cloned().collect();
        let used: Vec<_> = items(new, "ports")
            .filter_map(|port| port["nodePort"].as_u64())
            .collect();
        for port in items(new, "ports") {
            let before = known.iter().find(|each| each["name"] == port["name"]);
            let number = before.and_then(|before| before["nodePort"].as_u64());
            if let Some(number) = number.filter(|number| !used.contains(number)) {
                default(port, "nodePort", json!(number));
            }
        }
    }
}

/// The one address and the list of them go together; who changes one means both.
fn match_addresses(new: &mut Value, old: &Value) {
    if new["clusterIP"] == old["clusterIP"] || new["clusterIPs"] != old["clusterIPs"] {
        return;
    }
    if is_empty(&new["clusterIP"]) {
        remove(new, "clusterIPs");
    } else {
        new["clusterIPs"] = json!([new["clusterIP"]]);
    }
}

fn default_addresses(new: &mut Value) {
    if !is_empty(&new["clusterIP"]) && is_empty(&new["clusterIPs"]) {
        new["clusterIPs"] = json!([new["clusterIP"]]);
    }
}

fn allocate(world: &mut World, new: &mut Value) {
    if has_address(new) {
        default(new, "ipFamilyPolicy", json!("SingleStack"));
        default(new, "ipFamilies", json!(["IPv4"]));
        if is_empty(&new["clusterIP"]) {
            let address = world.addresses.service();
            new["clusterIP"] = json!(address);
            new["clusterIPs"] = json!([address]);
        }
    }
    if has_node_port(new) {
        for port in items(new, "ports") {
            if port["nodePort"].is_null() {
                port["nodePort"] = json!(world.addresses.node_port());
            }
        }
    }
}

/// What the new type has no use for goes, unless it was changed as well.
fn drop_what_no_longer_applies(new: &mut Value, old: &Value) {
    if has_address(old) && !has_address(new) {
        if new["clusterIP"] == old["clusterIP"] && new["clusterIPs"] == old["clusterIPs"] {
            remove(new, "clusterIP");
            remove(new, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if new[field] == old[field] {
                remove(new, field);
            }
        }
    }
    if has_node_port(old) && !has_node_port(new) {
        let known: Vec<_> = ports(old).map(|port| port["nodePort"].clone()).collect();
        let numbers: Vec<_> = ports(new).map(|port| port["nodePort"].clone()).collect();
        if numbers.iter().all(|number| known.contains(number)) {
            for port in items(new, "ports") {
                remove(port, "nodePort");
            }
        }
    }
    if is_open_to_others(old)
        && !is_open_to_others(new)
        && new["externalTrafficPolicy"] == old["externalTrafficPolicy"]
    {
        remove(new, "externalTrafficPolicy");
    }
    let is_balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    if is_balanced(old) && !is_balanced(new) {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if new[field] == old[field] {
                remove(new, field);
            }
        }
    }
}

/// Whether a Service of this type has an address in the cluster, be it `None`.
pub(super) fn has_address(spec: &Value) -> bool {
    spec["type"] != "ExternalName"
}

fn has_node_port(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

fn ports(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["ports"].as_array().into_iter().flatten()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty)
}

fn remove(object: &mut Value, field: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(field);
    }
}
