//! Label and annotation keys, and the values krane gives them.

/// Who manages the object; krane touches nothing where this is not [`MANAGER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What the object is, for selectors.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Workspace id of the control plane.
pub const WORKSPACE_ID: &str = "unkey.com/workspace.id";
/// Project id of the control plane.
pub const PROJECT_ID: &str = "unkey.com/project.id";
/// App id of the control plane; present even when empty.
pub const APP_ID: &str = "unkey.com/app.id";
/// Environment id of the control plane, also the key ring of its secrets.
pub const ENVIRONMENT_ID: &str = "unkey.com/environment.id";
/// Deployment id of the control plane.
pub const DEPLOYMENT_ID: &str = "unkey.com/deployment.id";
/// Sentinel id of the control plane.
pub const SENTINEL_ID: &str = "unkey.com/sentinel.id";
/// Build id; present even when empty.
pub const BUILD_ID: &str = "unkey.com/build.id";
/// Id of a policy that the control plane sent; never on the isolation policies krane makes itself.
pub const NETWORK_POLICY_ID: &str = "unkey.com/networkpolicy.id";
/// Asks the mutating webhook to inject the secrets client into pods.
pub const INJECT: &str = "unkey.com/inject";
/// On the objects that calls of the scheduler made, on their pods not: who wants them. Without it the
/// control plane does (D32).
pub const DESIRED_BY: &str = "krane.unkey.com/desired-by";
/// Value of [`DESIRED_BY`].
pub const SCHEDULER: &str = "scheduler";
/// Namespace of a pod, inside Cilium selectors only.
pub const CILIUM_POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";

/// On a ReplicaSet and its pod template: what a call of the scheduler named, to be told back.
pub const READINESS_ID: &str = "unkey.com/readiness.id";
/// On the pod template: hash of what was rendered; a pod with another one is outdated.
pub const TEMPLATE_ANNOTATION: &str = "krane.unkey.com/template";
/// On every object krane writes: raised when the same state renders differently.
pub const RENDERER_ANNOTATION: &str = "krane.unkey.com/renderer";
/// On a Deployment itself: hash of the fields of the state that its pod template was rendered from.
pub const STATE_ANNOTATION: &str = "krane.unkey.com/state";
/// On a live object: krane repairs and applies nothing until this RFC 3339 moment.
pub const HOLD_ANNOTATION: &str = "krane.unkey.com/hold";

/// Field manager of what a person asks krane to write.
pub const OPERATOR: &str = "krane-operator";

/// Field manager and value of [`MANAGED_BY`].
pub const MANAGER: &str = "krane";
/// [`COMPONENT`] of workload ReplicaSets and their pods.
pub const COMPONENT_DEPLOYMENT: &str = "deployment";
/// [`COMPONENT`] of sentinels.
pub const COMPONENT_SENTINEL: &str = "sentinel";
/// [`COMPONENT`] of Cilium policies.
pub const COMPONENT_POLICY: &str = "ciliumnetworkpolicy";
/// [`COMPONENT`] of namespaces krane made.
pub const COMPONENT_NAMESPACE: &str = "namespace";
/// [`COMPONENT`] of registry pull secrets.
pub const COMPONENT_PULL_SECRET: &str = "pull-secret";
/// [`COMPONENT`] of the Lease.
pub const COMPONENT_LEASE: &str = "lease";
/// Name of the Lease, in krane's own namespace.
pub const LEASE_NAME: &str = "krane";

/// The namespace all sentinels run in.
pub const SENTINEL_NAMESPACE: &str = "sentinel";
/// Name of the registry pull secret in every workload namespace.
pub const PULL_SECRET_NAME: &str = "depot-pull-secret";
