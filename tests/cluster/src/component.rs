//! The programs a cluster consists of, and how they are named.

use std::fmt;

/// A program of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// ReplicaSets, Deployments, namespaces, garbage collection, tokens.
    ControllerManager,
    /// Places pods on nodes.
    Scheduler,
    /// Plays the nodes and their kubelets.
    Kwok,
    /// Restores etcd from a backup; it runs for that alone.
    EtcdUtl,
}

impl Component {
    /// All components that run all the time, in the order they are started.
    pub const ALL: [Self; 5] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
    ];

    /// The file name of its program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::EtcdUtl => "etcdutl",
        }
    }

    /// The user name it has at the API server; etcd and the API server itself have none.
    pub const fn user(self) -> Option<&'static str> {
        match self {
            Self::Etcd | Self::ApiServer | Self::EtcdUtl => None,
            Self::ControllerManager => Some("system:kube-controller-manager"),
            Self::Scheduler => Some("system:kube-scheduler"),
            Self::Kwok => Some("kwok"),
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}
