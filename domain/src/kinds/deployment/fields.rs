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
    /// Places in the rendered HorizontalPodAutoscaler, which there is with field 27 only.
    pub autoscaler_places: &'static [&'static str],
}

const fn field(number: u32, name: &'static str, places: &'static [&'static str]) -> ProtoField {
    ProtoField {
        number,
        name,
        places,
        autoscaler_places: &[],
    }
}

impl ProtoField {
    const fn and_in_autoscaler(self, autoscaler_places: &'static [&'static str]) -> Self {
        Self {
            autoscaler_places,
            ..self
        }
    }
}

/// Every field krane knows. A field of the protocol without a row here fails a test.
pub const FIELD_TABLE: &[ProtoField] = &[
    field(1, "k8s_namespace", &["metadata.namespace"]).and_in_autoscaler(&["metadata.namespace"]),
    field(
        2,
        "k8s_name",
        &["metadata.name", "spec.template.metadata.generateName"],
    )
    .and_in_autoscaler(&[
        "metadata.name",
        "metadata.ownerReferences[0].name",
        "spec.scaleTargetRef.name",
    ]),
    field(
        3,
        "workspace_id",
        &[
            "metadata.labels[\"unkey.com/workspace.id\"]",
            "spec.template.metadata.labels[\"unkey.com/workspace.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_WORKSPACE_ID].value",
        ],
    )
    .and_in_autoscaler(&["metadata.labels[\"unkey.com/workspace.id\"]"]),
    field(
        4,
        "project_id",
        &[
            "metadata.labels[\"unkey.com/project.id\"]",
            "spec.template.metadata.labels[\"unkey.com/project.id\"]",
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_PROJECT_ID].value",
        ],
    )
    .and_in_autoscaler(&["metadata.labels[\"unkey.com/project.id\"]"]),
    field(
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
    )
    .and_in_autoscaler(&["metadata.labels[\"unkey.com/environment.id\"]"]),
    field(
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
    )
    .and_in_autoscaler(&["metadata.labels[\"unkey.com/deployment.id\"]"]),
    field(
        7,
        "image",
        &["spec.template.spec.containers[name=deployment].image"],
    ),
    field(8, "replicas", &["spec.replicas"]),
    field(
        9,
        "cpu_millicores",
        &[
            "spec.template.spec.containers[name=deployment].resources.limits.cpu",
            "spec.template.spec.containers[name=deployment].resources.requests.cpu",
        ],
    ),
    field(
        10,
        "memory_mib",
        &[
            "spec.template.spec.containers[name=deployment].resources.limits.memory",
            "spec.template.spec.containers[name=deployment].resources.requests.memory",
        ],
    ),
    field(
        11,
        "build_id",
        &[
            "metadata.labels[\"unkey.com/build.id\"]",
            "spec.template.metadata.labels[\"unkey.com/build.id\"]",
        ],
    ),
    field(
        12,
        "encrypted_environment_variables",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_ENCRYPTED_ENV].value"],
    ),
    field(
        13,
        "command",
        &["spec.template.spec.containers[name=deployment].command"],
    ),
    field(
        14,
        "port",
        &[
            "spec.template.spec.containers[name=deployment].env[name=PORT].value",
            "spec.template.spec.containers[name=deployment].ports[0].containerPort",
            "spec.template.spec.containers[name=deployment].livenessProbe.httpGet.port",
            "spec.template.spec.containers[name=deployment].readinessProbe.httpGet.port",
        ],
    ),
    field(
        15,
        "shutdown_signal",
        &["spec.template.spec.containers[name=deployment].lifecycle.preStop.exec.command"],
    ),
    field(
        17,
        "healthcheck",
        &[
            "spec.template.spec.containers[name=deployment].livenessProbe",
            "spec.template.spec.containers[name=deployment].readinessProbe",
        ],
    ),
    field(
        18,
        "app_id",
        &[
            "metadata.labels[\"unkey.com/app.id\"]",
            "spec.template.metadata.labels[\"unkey.com/app.id\"]",
        ],
    )
    .and_in_autoscaler(&["metadata.labels[\"unkey.com/app.id\"]"]),
    field(
        21,
        "environment_slug",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_ENVIRONMENT_SLUG].value"],
    ),
    field(
        22,
        "region",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_REGION].value"],
    ),
    field(
        23,
        "git_commit_sha",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_COMMIT_SHA].value"],
    ),
    field(
        24,
        "git_branch",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_BRANCH].value"],
    ),
    field(
        25,
        "git_repo",
        &["spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_REPO].value"],
    ),
    field(
        26,
        "git_commit_message",
        &[
            "spec.template.spec.containers[name=deployment].env[name=UNKEY_GIT_COMMIT_MESSAGE].value",
        ],
    ),
    field(27, "autoscaling", &["spec.replicas"]).and_in_autoscaler(&[
        "spec.minReplicas",
        "spec.maxReplicas",
        "spec.metrics[0].resource.target.averageUtilization",
        "spec.metrics[1].resource.target.averageUtilization",
    ]),
    field(
        29,
        "ephemeral_storage",
        &[
            "spec.template.spec.containers[name=deployment]\
             .env[name=UNKEY_EPHEMERAL_DISK_PATH].value",
            "spec.template.spec.containers[name=deployment].volumeMounts[name=data].mountPath",
            "spec.template.spec.volumes[name=data].ephemeral.volumeClaimTemplate.spec.resources\
             .requests.storage",
        ],
    ),
];
