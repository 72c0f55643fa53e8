//! What there is to watch and to call.

/// What a desired-state stream is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Workloads.
    Deployments,
    /// Sentinels.
    Sentinels,
    /// Network policies.
    Policies,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployments, Self::Sentinels, Self::Policies];
}

/// A method of `ctrl.v1.ClusterService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// `Watch…`
    Watch(Kind),
    /// `GetDesired…State`
    Desired(Kind),
    /// `ReportDeploymentStatus`
    ReportDeployment,
    /// `ReportSentinelStatus`
    ReportSentinel,
    /// `Heartbeat`
    Heartbeat,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Watch(Kind::Deployments),
        Self::Watch(Kind::Sentinels),
        Self::Watch(Kind::Policies),
        Self::Desired(Kind::Deployments),
        Self::Desired(Kind::Sentinels),
        Self::Desired(Kind::Policies),
        Self::ReportDeployment,
        Self::ReportSentinel,
        Self::Heartbeat,
    ];

    /// The path of its requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Watch(Kind::Deployments) => "/ctrl.v1.ClusterService/WatchDeployments",
            Self::Watch(Kind::Sentinels) => "/ctrl.v1.ClusterService/WatchSentinels",
            Self::Watch(Kind::Policies) => "/ctrl.v1.ClusterService/WatchCiliumNetworkPolicies",
            Self::Desired(Kind::Deployments) => "/ctrl.v1.ClusterService/GetDesiredDeploymentState",
            Self::Desired(Kind::Sentinels) => "/ctrl.v1.ClusterService/GetDesiredSentinelState",
            Self::Desired(Kind::Policies) => {
                "/ctrl.v1.ClusterService/GetDesiredCiliumNetworkPolicyState"
            }
            Self::ReportDeployment => "/ctrl.v1.ClusterService/ReportDeploymentStatus",
            Self::ReportSentinel => "/ctrl.v1.ClusterService/ReportSentinelStatus",
            Self::Heartbeat => "/ctrl.v1.ClusterService/Heartbeat",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.path() == path)
    }
}
