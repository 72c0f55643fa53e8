//! Where every field of `ApplyDeployment` ends up.

#[cfg(test)]
mod tests;

/// One field of the `ApplyDeployment` message and the places its value lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtoField {
    /// Field number.
    pub number: u32,
    /// Field name in the protocol.
    pub name: &'static str,
    /// Places in the rendered ReplicaSet, in the notation of
    /// [`Difference::path`](crate::drift::Difference::path).
    pub places: &'static [&'static str],
    /// What of it is not built yet; empty when all is.
    pub later: &'static str,
}

const fn built(number: u32, name: &'static str, places: &'static [&'static str]) -> ProtoField {
    ProtoField {
        number,
        name,
        places,
        later: "",
    }
}

/// Every field krane knows. A field of the protocol without a row here fails a test (A12).
pub const FIELD_TABLE: &[ProtoField] = &[
    built(1, "k8s_namespace", &["metadata.namespace"]),
    built(
        2,
        "k8s_name",
        &["metadata.name", "spec.template.metadata.generateName"],
    ),
    built(
        3,
        "workspace_id",
        &[
            "metadata.labels[\"unkey.com/workspace.id\"]",
            "spec.template.metadata.labels[\"unkey.com/workspace.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_WORKSPACE_ID].value",
        ],
    ),
    built(
        4,
        "project_id",
        &[
            "metadata.labels[\"unkey.com/project.id\"]",
            "spec.template.metadata.labels[\"unkey.com/project.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_PROJECT_ID].value",
        ],
    ),
    built(
        5,
        "environment_id",
        &[
            "metadata.labels[\"unkey.com/environment.id\"]",
            "spec.template.metadata.annotations[\"unkey.com/environment.id\"]",
            "spec.template.metadata.labels[\"unkey.com/environment.id\"]",
            "spec.template.spec.affinity.podAffinity\
             .preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector\
             .matchLabels[\"unkey.com/environment.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_ENVIRONMENT_ID].value",
        ],
    ),
    built(
        6,
        "deployment_id",
        &[
            "metadata.labels[\"unkey.com/deployment.id\"]",
            "spec.selector.matchLabels[\"unkey.com/deployment.id\"]",
            "spec.template.metadata.annotations[\"unkey.com/deployment.id\"]",
            "spec.template.metadata.labels[\"unkey.com/deployment.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_DEPLOYMENT_ID].value",
            "spec.template.spec.topologySpreadConstraints[0].labelSelector\
             .matchLabels[\"unkey.com/deployment.id\"]",
        ],
    ),
    built(
        7,
        "image",
        &["spec.template.spec.containers[name=deployment].image"],
    ),
    built(8, "replicas", &["spec.replicas"]),
    built(
        9,
        "cpu_millicores",
        &[
            "spec.template.spec.containers[name=deployment].resources.limits.cpu",
            "spec.template.spec.containers[name=deployment].resources.requests.cpu",
        ],
    ),
    built(
        10,
        "memory_mib",
        &[
            "spec.template.spec.containers[name=deployment].resources.limits.memory",
            "spec.template.spec.containers[name=deployment].resources.requests.memory",
        ],
    ),
    built(
        11,
        "build_id",
        &[
            "metadata.labels[\"unkey.com/build.id\"]",
            "spec.template.metadata.labels[\"unkey.com/build.id\"]",
        ],
    ),
    built(
        12,
        "encrypted_environment_variables",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_ENCRYPTED_ENV].value"],
    ),
    built(
        13,
        "command",
        &["spec.template.spec.containers[name=deployment].command"],
    ),
    built(
        14,
        "port",
        &[
            "spec.template.spec.containers[name=deployment].env[name=PORT].value",
            "spec.template.spec.containers[name=deployment].ports[0].containerPort",
        ],
    ),
    built(
        15,
        "shutdown_signal",
        &["spec.template.spec.containers[name=deployment].lifecycle.preStop.exec.command"],
    ),
    built(
        17,
        "healthcheck",
        &[
            "spec.template.spec.containers[name=deployment].livenessProbe",
            "spec.template.spec.containers[name=deployment].readinessProbe",
        ],
    ),
    built(
        18,
        "app_id",
        &[
            "metadata.labels[\"unkey.com/app.id\"]",
            "spec.template.metadata.labels[\"unkey.com/app.id\"]",
        ],
    ),
    built(
        21,
        "environment_slug",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_ENVIRONMENT_SLUG].value"],
    ),
    built(
        22,
        "region",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_REGION].value"],
    ),
    built(
        23,
        "git_commit_sha",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_COMMIT_SHA].value"],
    ),
    built(
        24,
        "git_branch",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_BRANCH].value"],
    ),
    built(
        25,
        "git_repo",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_REPO].value"],
    ),
    built(
        26,
        "git_commit_message",
        &[
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_COMMIT_MESSAGE].value",
        ],
    ),
    ProtoField {
        number: 27,
        name: "autoscaling",
        places: &["spec.replicas"],
        later: "the autoscaler: for now the workload runs with at least min_replicas",
    },
    ProtoField {
        number: 29,
        name: "ephemeral_storage",
        places: &[],
        later: "the volume: a state that asks for one is invalid",
    },
];
