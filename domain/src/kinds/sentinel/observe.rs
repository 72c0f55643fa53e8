//! What a live Deployment of a sentinel says.

use std::sync::Arc;

use serde::Deserialize;

use super::template::CONTAINER;
use crate::kinds::Observation;
use crate::labels;
use crate::lenient::{Items, Struct, Text};
use crate::object::LiveObject;
use crate::pod::PodDigest;
use crate::report::{Health, Report};

/// What to report about a sentinel; `None` without an id, for nobody knows it then.
pub(super) fn observe(live: &LiveObject, pods: &[&PodDigest]) -> Option<Observation> {
    let id = live
        .label(labels::SENTINEL_ID)
        .filter(|id| !id.is_empty())?;
    let glance = Glance::at(live);
    let health = match (glance.wanted, glance.available) {
        (0, _) => Health::Paused,
        (_, 0) => Health::Unhealthy,
        _ => Health::Healthy,
    };
    let config_error = pods
        .iter()
        .filter(|pod| !pod.is_terminating)
        .find_map(|pod| pod.config_error.clone());
    Some(Observation {
        report: Report::Health {
            key: live.reference.key(),
            id: Arc::from(id),
            available: glance.available,
            health,
            running_image: glance.running_image(),
        },
        outdated: 0,
        config_error,
    })
}

/// Whether every pod wanted runs the live template and is available.
pub(super) fn is_rolled_out(live: &LiveObject) -> bool {
    Glance::at(live).is_converged
}

/// What an observation needs of a Deployment, read without building its tree.
struct Glance {
    wanted: u32,
    available: u32,
    is_converged: bool,
    image: String,
}

impl Glance {
    fn at(live: &LiveObject) -> Self {
        let Struct(object) =
            serde_json::from_str::<Struct<Object<'_>>>(&live.content).unwrap_or_default();
        let Struct(spec) = object.spec;
        let Struct(status) = object.status;
        let number = |text: &Text<'_>| text.as_str().parse::<u32>().unwrap_or(0);
        let generation = |text: &Text<'_>| text.as_str().parse::<u64>().unwrap_or(0);
        let (wanted, available) = (number(&spec.replicas), number(&status.available_replicas));
        let Struct(template) = spec.template;
        let containers = &template.spec.0.containers.0;
        let own = containers
            .iter()
            .find(|container| container.0.name.as_str() == CONTAINER)
            .or_else(|| containers.first());
        Self {
            wanted,
            available,
            is_converged: generation(&status.observed_generation)
                >= generation(&object.metadata.0.generation)
                && number(&status.updated_replicas) >= wanted
                && available >= wanted
                && number(&status.unavailable_replicas) == 0,
            image: own
                .map(|container| container.0.image.as_str().to_owned())
                .unwrap_or_default(),
        }
    }

    /// The image, once every pod runs it.
    fn running_image(self) -> String {
        if self.is_converged {
            self.image
        } else {
            String::new()
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Struct<Metadata<'a>>,
    #[serde(borrow)]
    spec: Struct<Spec<'a>>,
    #[serde(borrow)]
    status: Struct<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    generation: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    replicas: Text<'a>,
    #[serde(borrow)]
    template: Struct<Template<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    spec: Struct<PodSpec<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec<'a> {
    #[serde(borrow)]
    containers: Items<Struct<Container<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    image: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    observed_generation: Text<'a>,
    #[serde(borrow)]
    updated_replicas: Text<'a>,
    #[serde(borrow)]
    available_replicas: Text<'a>,
    #[serde(borrow)]
    unavailable_replicas: Text<'a>,
}
