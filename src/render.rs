//! `krane render`: the manifests that krane would write for given states, without a cluster.

use std::fmt;

use krane_actors::ports::Answer;
use krane_domain::desired::Change;
use krane_domain::ids::{Controller, SharedKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::{self, Desired, Member, Rules};
use krane_domain::object::{LiveObject, Rendered, Resource};
use krane_proto::ctrl::v1::{CiliumNetworkPolicyState, DeploymentState, SentinelState};
use prost::Message;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Value, json};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::edge::wire::Wire;

/// States by kind, each as protobuf's JSON writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    deployments: Vec<DeploymentState>,
    sentinels: Vec<SentinelState>,
    cilium_network_policies: Vec<CiliumNetworkPolicyState>,
}

/// Manifests, in the order in which they would be written.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The bodies.
    pub bodies: Vec<Value>,
    /// Namespaces whose pull secret is left out: it holds the registry's password.
    pub pull_secrets: Vec<String>,
}

/// Why nothing is rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The input is not what was expected.
    #[error("the states cannot be read")]
    Input(#[source] serde_json::Error),
    /// States that krane would set aside.
    #[error("{} of the states would be set aside", .0.len())]
    Invalid(Vec<InvalidState>),
}

/// A state that krane would set aside.
#[derive(Debug)]
pub struct InvalidState {
    /// Which: `deployments[2]`.
    pub place: String,
    /// Why, with a remedy.
    pub invalid: Invalid,
}

impl fmt::Display for InvalidState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.invalid)
    }
}

/// Renders every state of the text.
pub fn render(text: &str, rules: &Rules) -> Result<Manifests, RenderError> {
    // A list would be taken for the fields in their order.
    if !text.trim_start().starts_with('{') {
        let problem = "must be an object, such as {\"deployments\": []}";
        return Err(RenderError::Input(serde_json::Error::custom(problem)));
    }
    let input: Input = serde_json::from_str(text).map_err(RenderError::Input)?;
    let mut all = Collected {
        rules,
        rendered: Vec::new(),
        members: BTreeMap::new(),
        invalid: Vec::new(),
    };
    all.take(Controller::Deployments, "deployments", &input.deployments);
    all.take(Controller::Sentinels, "sentinels", &input.sentinels);
    let policies = &input.cilium_network_policies;
    all.take(Controller::Cilium, "ciliumNetworkPolicies", policies);
    all.finish()
}

struct Collected<'a> {
    rules: &'a Rules,
    rendered: Vec<Rendered>,
    members: BTreeMap<SharedKey, Vec<Member>>,
    invalid: Vec<InvalidState>,
}

impl Collected<'_> {
    fn take(&mut self, controller: Controller, name: &str, states: &[impl Message]) {
        let wire = Wire::new("", "", controller, Arc::new(self.rules.clone()));
        for (number, state) in states.iter().enumerate() {
            // The same reader as for what the control plane sends.
            let answer = wire.answer(&state.encode_to_vec().into());
            let change = match answer {
                Answer::State { change, .. } => change,
                Answer::NotFound | Answer::Empty => Err(Invalid::new(
                    "state",
                    "names no object",
                    "write `apply` or `delete` with k8sNamespace and k8sName",
                )),
            };
            match change {
                Ok(Change::Apply(desired)) => self.add(&desired),
                Ok(Change::Delete) => {}
                Err(invalid) => self.invalid.push(InvalidState {
                    place: format!("{name}[{number}]"),
                    invalid,
                }),
            }
        }
    }

    fn add(&mut self, desired: &Desired) {
        for needed in desired.needs(self.rules) {
            let members = self.members.entry(needed).or_default();
            members.push(desired.member());
        }
        let primary = desired.render(self.rules, None);
        let owner = as_if_live(&primary);
        let dependants = owner.map(|owner| desired.dependants(self.rules, &owner));
        self.rendered.push(primary);
        for mut dependant in dependants.into_iter().flatten() {
            // The owner's uid is known only in a cluster.
            if let Some(metadata) = dependant.body["metadata"].as_object_mut() {
                metadata.remove("ownerReferences");
            }
            self.rendered.push(dependant);
        }
    }

    fn finish(mut self) -> Result<Manifests, RenderError> {
        if !self.invalid.is_empty() {
            return Err(RenderError::Invalid(self.invalid));
        }
        for (key, mut members) in std::mem::take(&mut self.members) {
            members.sort();
            members.dedup();
            self.rendered
                .extend(kinds::render_shared(&key, &members, self.rules));
        }
        // What others stand in comes first, as kubectl applies in the order of the file.
        let place = |rendered: &Rendered| {
            let resource = rendered.reference.resource;
            let is_shared = [Resource::CiliumNetworkPolicy, Resource::Secret].contains(&resource);
            let rank = (resource != Resource::Namespace, !is_shared);
            (rank, rendered.reference.clone())
        };
        self.rendered.sort_by_key(place);
        let mut manifests = Manifests::default();
        for rendered in self.rendered {
            if rendered.reference.resource == Resource::Secret {
                let namespace = rendered.reference.namespace.to_string();
                manifests.pull_secrets.push(namespace);
            } else {
                manifests.bodies.push(rendered.body);
            }
        }
        Ok(manifests)
    }
}

/// The object as if it were in a cluster, for what hangs on it.
fn as_if_live(rendered: &Rendered) -> Option<LiveObject> {
    let mut body = rendered.body.clone();
    body["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    body["metadata"]["resourceVersion"] = json!("1");
    LiveObject::from_json(rendered.reference.resource, body).ok()
}

#[cfg(test)]
mod tests;
