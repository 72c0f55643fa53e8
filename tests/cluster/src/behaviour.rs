//! How pods behave, and the stages that make kwok play them so.
//!
//! Every stage starts from phase Pending or from a deletion, so whatever a test writes into the status of a pod that
//! has left Pending stays as written.

mod status;

use std::fmt;

use serde_json::{Value, json};

use status::{
    CRASHING_CONTAINERS, FAILED, RUNNING_CONTAINERS, UNREADY_CONTAINERS, image_pull, running,
};

/// The annotation that chooses a pod's [`Behaviour`]; it wins over the image's tag.
pub const BEHAVIOUR_ANNOTATION: &str = "testcluster.krane.unkey.com/behaviour";

/// What happens to a pod once it has a node. Chosen by [`BEHAVIOUR_ANNOTATION`], else by the tag of the pod's first
/// image (`registry.example/app:crash`), else [`Behaviour::Well`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// An address, Running and Ready at once; gone at once when deleted.
    Well,
    /// Never started: no address, Pending.
    Pending,
    /// An address, but the image never arrives: Pending, `ErrImagePull`.
    ImagePull,
    /// Well after three seconds.
    Slow,
    /// Running with an address, never Ready.
    Unready,
    /// Running with an address, `CrashLoopBackOff`.
    Crash,
    /// Failed after two seconds. A ReplicaSet keeps replacing such pods.
    Fail,
    /// Well, but it stays Terminating when deleted, until the test deletes it without grace.
    Stuck,
    /// Nothing at all: the test patches the status (see `Cluster::set_pod_ready` and its neighbours).
    Manual,
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Well,
        Self::Pending,
        Self::ImagePull,
        Self::Slow,
        Self::Unready,
        Self::Crash,
        Self::Fail,
        Self::Stuck,
        Self::Manual,
    ];

    /// The value of the annotation and of the tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Pending => "pending",
            Self::ImagePull => "image-pull",
            Self::Slow => "slow",
            Self::Unready => "unready",
            Self::Crash => "crash",
            Self::Fail => "fail",
            Self::Stuck => "stuck",
            Self::Manual => "manual",
        }
    }

    /// An image whose pods behave so.
    pub fn image(self) -> String {
        format!("registry.example/app:{self}")
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// kwok's configuration: JSON documents, which are YAML.
pub(crate) fn kwok_configuration() -> String {
    let documents = [
        json!({
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            // Once there is a configuration, kwok has no defaults for these.
            "options": {
                "podPlayStageParallelism": 16,
                "nodePlayStageParallelism": 4,
                "nodeLeaseParallelism": 4,
                "podsOnNodeSyncParallelism": 4,
            },
        }),
        node_stage(),
        started(
            "well",
            &Starts::Otherwise,
            0,
            &running(true, RUNNING_CONTAINERS),
        ),
        started(
            "slow",
            &Starts::Only(Behaviour::Slow),
            3000,
            &running(true, RUNNING_CONTAINERS),
        ),
        started(
            "unready",
            &Starts::Only(Behaviour::Unready),
            0,
            &running(false, UNREADY_CONTAINERS),
        ),
        started(
            "crash",
            &Starts::Only(Behaviour::Crash),
            0,
            &running(false, CRASHING_CONTAINERS),
        ),
        started("fail", &Starts::Only(Behaviour::Fail), 2000, FAILED),
        started(
            "image-pull",
            &Starts::Only(Behaviour::ImagePull),
            0,
            &image_pull(),
        ),
        stage(
            "pod-delete",
            "Pod",
            &[
                requirement(".metadata.deletionTimestamp", "Exists", &[]),
                requirement(
                    &behaviour_expression(),
                    "NotIn",
                    &[Behaviour::Stuck.as_str()],
                ),
            ],
            0,
            &json!({"delete": true}),
        ),
    ];
    documents.iter().fold(String::new(), |text, document| {
        text + "---\n" + &document.to_string() + "\n"
    })
}

/// Which pending pods a stage is for.
enum Starts {
    Only(Behaviour),
    Otherwise,
}

fn behaviour_expression() -> String {
    format!(
        ".metadata.annotations[\"{BEHAVIOUR_ANNOTATION}\"] // (.spec.containers[0].image | split(\":\") | last)"
    )
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    if values.is_empty() {
        json!({"key": key, "operator": operator})
    } else {
        json!({"key": key, "operator": operator, "values": values})
    }
}

fn stage(name: &str, kind: &str, requirements: &[Value], delay: u32, next: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": requirements},
            "delay": {"durationMilliseconds": delay},
            "next": next,
        },
    })
}

/// A stage for pods that have a node and were not started yet.
fn started(name: &str, starts: &Starts, delay: u32, status: &str) -> Value {
    let behaviour = match starts {
        Starts::Only(behaviour) => {
            requirement(&behaviour_expression(), "In", &[behaviour.as_str()])
        }
        Starts::Otherwise => {
            let others: Vec<&str> = Behaviour::ALL
                .into_iter()
                // A stuck pod starts well; only its end differs.
                .filter(|behaviour| !matches!(behaviour, Behaviour::Well | Behaviour::Stuck))
                .map(Behaviour::as_str)
                .collect();
            requirement(&behaviour_expression(), "NotIn", &others)
        }
    };
    let requirements = [
        requirement(".metadata.deletionTimestamp", "DoesNotExist", &[]),
        requirement(".status.phase", "In", &["Pending"]),
        // Also the end of the image-pull stage, which leaves the phase as it is.
        requirement(".status.podIP", "DoesNotExist", &[]),
        behaviour,
    ];
    stage(
        &format!("pod-{name}"),
        "Pod",
        &requirements,
        delay,
        &json!({"statusTemplate": status}),
    )
}

fn node_stage() -> Value {
    let ready = ".status.conditions.[] | select( .type == \"Ready\" ) | .status";
    let status = "
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
phase: Running
";
    let requirements = [requirement(ready, "NotIn", &["True"])];
    stage(
        "node-ready",
        "Node",
        &requirements,
        0,
        &json!({"statusTemplate": status}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_json_and_names_differ() {
        let text = kwok_configuration();
        let documents: Vec<Value> = text
            .split("---\n")
            .skip(1)
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        let mut names: Vec<_> = documents
            .iter()
            .filter_map(|document| document["metadata"]["name"].as_str())
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(count + 1, documents.len());
    }

    #[test]
    fn images_carry_the_behaviour() {
        for behaviour in Behaviour::ALL {
            assert!(behaviour.image().ends_with(&format!(":{behaviour}")));
        }
    }
}
