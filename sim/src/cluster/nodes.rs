//! The machines that pods run on.

use std::sync::Arc;

/// One machine.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) is_lost: bool,
    /// Pods that are bound to it now.
    pods: usize,
    /// Pods it ever got: their addresses differ.
    addresses: u32,
}

/// All machines.
#[derive(Clone, Debug)]
pub(super) struct Nodes(Vec<Node>);

/// Addresses and ports that Services get.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    services: u32,
    node_ports: u32,
}

impl Addresses {
    /// An address nobody had before.
    pub(super) fn service(&mut self) -> String {
        self.services += 1;
        let (high, low) = (self.services >> 8 & 0xff, self.services & 0xff);
        format!("10.255.{high}.{low}")
    }

    /// A port of every node that nobody had before.
    pub(super) fn node_port(&mut self) -> u32 {
        self.node_ports += 1;
        30_000 + self.node_ports % 2767
    }
}

impl Node {
    pub(super) const fn forget_pods(&mut self) {
        self.pods = 0;
    }
}

impl Nodes {
    pub(super) fn new(count: usize) -> Self {
        let nodes = (0..count).map(|number| Node {
            name: format!("untrusted-{number}").into(),
            is_lost: false,
            pods: 0,
            addresses: 1,
        });
        Self(nodes.collect())
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|node| *node.name == *name)
    }

    pub(super) fn is_lost(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|node| *node.name == *name && node.is_lost)
    }

    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.0.iter().map(|node| Arc::clone(&node.name)).collect()
    }

    /// A pod that was bound to one is bound to another.
    pub(super) fn move_pod(&mut self, from: Option<&str>, to: Option<&str>) {
        if let Some(node) = from.and_then(|name| self.get_mut(name)) {
            node.pods = node.pods.saturating_sub(1);
        }
        if let Some(node) = to.and_then(|name| self.get_mut(name)) {
            node.pods += 1;
        }
    }

    /// The working machine with the fewest pods.
    pub(super) fn least(&self) -> Option<Arc<str>> {
        let nodes = self.0.iter().filter(|node| !node.is_lost);
        let least = nodes.min_by_key(|node| node.pods);
        least.map(|node| Arc::clone(&node.name))
    }

    /// An address nobody had before.
    pub(super) fn address(&mut self, name: &str) -> String {
        let index = self.0.iter().position(|node| *node.name == *name);
        let index = index.unwrap_or_default();
        let Some(node) = self.0.get_mut(index) else {
            return "10.255.255.1".to_owned();
        };
        node.addresses += 1;
        let (high, low) = (node.addresses >> 8 & 0xff, node.addresses & 0xff);
        format!("10.{}.{high}.{low}", 1 + index % 254)
    }
}
