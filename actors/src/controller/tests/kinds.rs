//! Objects of each kind, for what must be true of all of them.

use krane_domain::desired::{Change, State};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::cilium_network_policy::PolicyInput;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::kinds::sentinel::SentinelInput;
use krane_domain::kinds::{Desired, Rules, cilium_network_policy, deployment, sentinel};
use krane_domain::object::{LiveObject, ObjectRef};
use krane_ports::Answer;
use serde_json::json;

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, input};

/// One kind of desired state, in numbered objects of numbered editions.
pub(super) struct Kind {
    pub(super) controller: Controller,
    key: fn(u64) -> ObjectKey,
    desired: fn(u64, u64) -> Result<Desired, Invalid>,
    /// Where the edition can be read, and what stands before its number.
    edition: (&'static str, &'static str),
}

pub(super) const KINDS: [Kind; 3] = [
    Kind {
        controller: Controller::Deployments,
        key: |number| spread("d", number),
        desired: workload,
        edition: IMAGE,
    },
    Kind {
        controller: Controller::Sentinels,
        key: |number| ObjectKey::new("sentinel", format!("s{number}")),
        desired: proxy,
        edition: IMAGE,
    },
    Kind {
        controller: Controller::Cilium,
        key: |number| spread("p", number),
        desired: policy,
        edition: ("/spec/description", "edition "),
    },
];

const IMAGE: (&str, &str) = (
    "/spec/template/spec/containers/0/image",
    "registry.example/app:",
);

fn spread(letter: &str, number: u64) -> ObjectKey {
    ObjectKey::new(format!("ns{}", number % 5), format!("{letter}{number}"))
}

fn image(edition: u64) -> String {
    format!("{}{edition}", IMAGE.1)
}

fn workload(number: u64, edition: u64) -> Result<Desired, Invalid> {
    let key = spread("d", number);
    let input = DeploymentInput {
        image: image(edition),
        ..input(&key.namespace, &key.name)
    };
    let desired = deployment::validate(input, &Rules::default())?;
    Ok(Desired::Deployment(Box::new(desired)))
}

fn proxy(number: u64, edition: u64) -> Result<Desired, Invalid> {
    let input = SentinelInput {
        k8s_name: format!("s{number}"),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        app_id: "app_1".into(),
        environment_id: format!("env_{}", number % 5),
        sentinel_id: format!("s_{number}"),
        image: image(edition),
        replicas: 2,
        cpu_millicores: 100,
        memory_mib: 64,
    };
    let desired = sentinel::validate(input, &Rules::default())?;
    Ok(Desired::Sentinel(Box::new(desired)))
}

fn policy(number: u64, edition: u64) -> Result<Desired, Invalid> {
    let key = spread("p", number);
    let policy = json!({
        "spec": { "description": format!("edition {edition}"), "endpointSelector": {} },
    });
    let input = PolicyInput {
        k8s_namespace: key.namespace.to_string(),
        k8s_name: key.name.to_string(),
        cilium_network_policy_id: format!("net_{number}"),
        policy: policy.to_string().into_bytes(),
    };
    let desired = cilium_network_policy::validate(input, &Rules::default())?;
    Ok(Desired::CiliumNetworkPolicy(Box::new(desired)))
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        self.controller.name()
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &'static Kind> {
        let controller = self.controller;
        KINDS
            .iter()
            .filter(move |kind| kind.controller != controller)
    }

    pub(super) fn key(&self, number: u64) -> ObjectKey {
        (self.key)(number)
    }

    pub(super) fn reference(&self, number: u64) -> ObjectRef {
        let key = self.key(number);
        ObjectRef::new(self.controller.primary(), key.namespace, key.name)
    }

    fn change(&self, number: u64, edition: u64) -> Result<Change, Invalid> {
        (self.desired)(number, edition).map(Change::Apply)
    }

    pub(super) fn wants(&self, version: u64, number: u64, edition: u64) -> State {
        let change = self.change(number, edition);
        assert!(change.is_ok(), "{}: {change:?}", self.name());
        State {
            key: self.key(number),
            version,
            change,
            size: 100,
        }
    }

    pub(super) fn unwants(&self, version: u64, number: u64) -> State {
        State {
            key: self.key(number),
            version,
            change: Ok(Change::Delete),
            size: 10,
        }
    }

    /// The answer that wants this object in this edition.
    pub(super) fn answer(&self, number: u64, edition: u64) -> Answer {
        Answer::State {
            key: self.key(number),
            change: self.change(number, edition),
        }
    }

    /// The edition in which an object is live; none when it is gone.
    pub(super) fn edition(&self, world: &World, number: u64) -> Option<u64> {
        let live: LiveObject = world.cluster.object(&self.reference(number))?;
        let (pointer, prefix) = self.edition;
        let value = live.value();
        let text = value.pointer(pointer)?.as_str()?.strip_prefix(prefix)?;
        text.parse().ok()
    }

    /// A world in which objects 1 to `count` are in place in edition 1, in versions of their
    /// numbers.
    pub(super) async fn in_place(&self, count: u64) -> World {
        let choices = Choices {
            controller: self.controller,
            max_lanes: 32,
            ..Choices::default()
        };
        let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
        for number in 1..=count {
            control_plane.push(self.wants(number, number, 1));
        }
        let world = World::start_with(choices, cluster, control_plane).await;
        world
            .until("in place", |world| world.cursor() == count)
            .await;
        world
    }
}
