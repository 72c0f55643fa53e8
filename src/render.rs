//! `krane render`: the manifests that krane would write for given states, without a cluster.

mod fault;
mod input;
mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use krane_control_plane::wire::Wire;
use krane_domain::desired::Change;
use krane_domain::ids::{Controller, SharedKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::{self, Desired, Member, Rules};
use krane_domain::object::{LiveObject, Rendered, Resource};
use krane_ports::Answer;
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::fault::Found;
pub use self::fault::{Fault, FaultKind, Faults, Place};
use self::input::{Given, Input, bare, outer};
use self::sample::sample;

/// An input that can be rendered, as help and docs show it.
pub const EXAMPLE: &str = include_str!("render/example.json");

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
    /// The input is no JSON, or no object.
    #[error("the states cannot be read")]
    Input(#[source] serde_json::Error),
    /// States that cannot be read, or that krane would set aside.
    #[error("{} in the input", krane_domain::words::many(.0.count, "fault"))]
    Faults(Faults),
}

/// Renders every state of the text.
pub fn render(text: &str, rules: &Rules) -> Result<Manifests, RenderError> {
    let mut input = input::read(text).map_err(RenderError::Input)?;
    let mut all = Collected {
        rules,
        rendered: Vec::new(),
        members: BTreeMap::new(),
        faults: std::mem::take(&mut input.faults),
    };
    all.take(Controller::Deployments, &input, &input.deployments);
    all.take(Controller::Sentinels, &input, &input.sentinels);
    all.take(Controller::Cilium, &input, &input.policies);
    all.finish(input.text)
}

struct Collected<'a> {
    rules: &'a Rules,
    rendered: Vec<Rendered>,
    members: BTreeMap<SharedKey, Vec<Member>>,
    faults: Vec<Found>,
}

impl Collected<'_> {
    fn take<'a, S: Message + DeserializeOwned>(
        &mut self,
        controller: Controller,
        input: &Input<'a>,
        states: &[Given<'a, S>],
    ) {
        let wire = Wire::new("", "", controller, Arc::new(self.rules.clone()));
        let sample = sample(controller);
        for given in states {
            match read(&wire, &given.state) {
                Ok(Change::Apply(desired)) => self.add(&desired),
                Ok(Change::Delete) => {}
                Err(invalid) => self.refuse(&wire, &sample, input, given, invalid),
            }
        }
    }

    /// Notes what is wrong with a state. Its reader stops at the first thing, so that it reads on as
    /// if that was mended.
    fn refuse<'a, S: Message + DeserializeOwned>(
        &mut self,
        wire: &Wire,
        sample: &Value,
        input: &Input<'a>,
        given: &Given<'a, S>,
        first: Invalid,
    ) {
        let mut wrong = given.unreadable.clone();
        let mut next = Some(first);
        while let Some(invalid) = next.take() {
            // What is as in the sample and wrong all the same has no remedy here.
            if wrong.insert(bare(outer(&invalid.field))) {
                self.faults.push(input.invalid(given, invalid));
                let mended = given.mended(&wrong, sample);
                next = mended.and_then(|state| read(wire, &state).err());
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

    fn finish(mut self, text: &str) -> Result<Manifests, RenderError> {
        if !self.faults.is_empty() {
            return Err(RenderError::Faults(Faults::of(text, self.faults)));
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

/// The same reader as for what the control plane sends.
fn read(wire: &Wire, state: &impl Message) -> Result<Change, Invalid> {
    match wire.answer(&state.encode_to_vec().into()) {
        Answer::State { change, .. } => change,
        Answer::NotFound | Answer::Empty => Err(Invalid::new(
            "state",
            "names no object",
            "write `apply` or `delete` with k8sNamespace and k8sName",
        )),
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
