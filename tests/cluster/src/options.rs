//! What a cluster is started with.

/// What a cluster is started with. The default is everything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches that are independent of each other"
)]
pub struct Options {
    /// Nodes in each of the two pools (`untrusted-N`, `sentinel-N`), spread over three zones.
    pub nodes: u16,
    /// Whether the API server writes an audit log ([`crate::Cluster::writes_by`]).
    pub audit: bool,
    /// Whether kwok runs, and with it the nodes: without it pods are made and never placed.
    pub kwok: bool,
    /// Whether the controller manager and the scheduler run. Without them a ReplicaSet is an object that nothing
    /// happens to, and namespaces are never finalized.
    pub controllers: bool,
    /// Whether the Cilium CRD is installed from the start ([`crate::Cluster::install_cilium`] does it later).
    pub cilium: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 3,
            audit: true,
            kwok: true,
            controllers: true,
            cilium: true,
        }
    }
}
