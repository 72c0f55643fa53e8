//! Whether a live isolation policy lets through all that is wanted, and more.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::{LiveObject, Rendered};

/// Whether the rendered policy differs from the live one only by ports the live one has on top:
/// workloads may count on such a policy, and the ports can wait to be removed (D18).
pub fn only_loses_ports(rendered: &Rendered, live: &LiveObject) -> bool {
    let live = live.value();
    let (Some(wanted), Some(live)) = (
        rules(rendered.body.pointer("/spec/ingress")),
        rules(live.pointer("/spec/ingress")),
    ) else {
        return false;
    };
    wanted.len() == live.len()
        && wanted != live
        && wanted
            .iter()
            .zip(&live)
            .all(|(wanted, live)| wanted.from == live.from && wanted.ports.is_subset(&live.ports))
}

#[derive(PartialEq)]
struct Rule<'a> {
    from: Option<&'a Value>,
    ports: BTreeSet<String>,
}

fn rules(ingress: Option<&Value>) -> Option<Vec<Rule<'_>>> {
    let rules = ingress?.as_array()?.iter().map(|rule| Rule {
        from: rule.get("fromEndpoints"),
        ports: rule
            .get("toPorts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.get("ports")?.as_array())
            .flatten()
            .map(Value::to_string)
            .collect(),
    });
    Some(rules.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::only_loses_ports;
    use crate::ids::SharedKey;
    use crate::kinds::{self, Member, Rules};
    use crate::object::{LiveObject, Rendered, Resource};

    fn policy(ports: &[u16]) -> Rendered {
        let key = SharedKey::IsolationPolicy {
            namespace: "ns".into(),
            environment: "env_1".into(),
        };
        let members: Vec<Member> = ports
            .iter()
            .map(|port| Member::isolated("ws", "env_1", *port))
            .collect();
        kinds::render_shared(&key, &members, &Rules::default()).expect("members exist")
    }

    fn live(ports: &[u16]) -> LiveObject {
        let mut body = policy(ports).body;
        body["metadata"]["uid"] = json!("u1");
        body["metadata"]["resourceVersion"] = json!("1");
        LiveObject::from_json(Resource::CiliumNetworkPolicy, body).expect("decodes")
    }

    #[test]
    fn a_policy_that_lets_more_ports_through_is_only_to_be_narrowed() {
        assert!(only_loses_ports(&policy(&[8080]), &live(&[8080, 9000])));
        assert!(
            !only_loses_ports(&policy(&[8080]), &live(&[8080])),
            "nothing to do"
        );
        assert!(
            !only_loses_ports(&policy(&[8080, 7000]), &live(&[8080, 9000])),
            "a port is missing"
        );
    }
}
