//! Names that identify things: controllers, objects, shared objects.

use std::fmt;
use std::sync::Arc;

/// A point in time: the time since the process started, on its monotonic clock.
pub type Moment = std::time::Duration;

/// Makes the controllers, so that none can be left out of any list of them.
macro_rules! controllers {
    ($($(#[$doc:meta])* $controller:ident = $name:literal,)+) => {
        /// The controllers krane is made of; each lives and fails alone.
        ///
        /// Also the closed set of values of the metric label `controller`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Controller {
            $($(#[$doc])* $controller,)+
        }

        impl Controller {
            /// All of them, in the order in which they start.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$controller),+];

            /// The name used in metrics, logs and paths of actors.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$controller => $name,)+
                }
            }
        }
    };
}

controllers! {
    /// Customer workloads as ReplicaSets.
    Deployments = "deployments",
    /// The proxies in front of them.
    Sentinels = "sentinels",
    /// Cilium network policies as the control plane sends them.
    Cilium = "cilium",
}

impl Controller {
    /// The controller of this [`name`](Self::name).
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|controller| controller.name() == name)
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Namespace and name of an object the control plane speaks about.
///
/// Everything krane keeps is keyed by both: names alone may repeat across namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The Kubernetes namespace.
    pub namespace: Arc<str>,
    /// The object's name within it.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key of these two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that several workloads need and none of them owns.
///
/// Each is reconciled in a lane of its own; a workload waits until those it needs are in place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedKey {
    /// The namespace itself.
    Namespace(Arc<str>),
    /// The ingress isolation of one environment within a namespace.
    IsolationPolicy {
        /// The workload namespace.
        namespace: Arc<str>,
        /// The environment id, as given by the control plane.
        environment: Arc<str>,
    },
    /// The registry pull secret of a namespace.
    PullSecret(Arc<str>),
}

impl SharedKey {
    /// The namespace the object is, or lives in.
    pub fn namespace(&self) -> &Arc<str> {
        match self {
            Self::Namespace(namespace)
            | Self::IsolationPolicy { namespace, .. }
            | Self::PullSecret(namespace) => namespace,
        }
    }
}

impl fmt::Display for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
            Self::IsolationPolicy {
                namespace,
                environment,
            } => {
                write!(
                    f,
                    "isolation policy of environment {environment} in {namespace}"
                )
            }
            Self::PullSecret(namespace) => write!(f, "pull secret in {namespace}"),
        }
    }
}

/// What one lane works on; never two lanes for one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKey {
    /// An object shared by workloads. Sorts first: workloads wait for these.
    Shared(SharedKey),
    /// An object the control plane speaks about.
    Workload(ObjectKey),
}

impl fmt::Display for WorkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(key) => key.fmt(f),
            Self::Workload(key) => key.fmt(f),
        }
    }
}
