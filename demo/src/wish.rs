//! What the control plane of the demo wants: apps, the sentinels before them, and the policies between them.

use krane_domain::ids::{Controller, ObjectKey};

/// The namespace of all sentinels.
pub(super) const SENTINELS: &str = "sentinel";

/// A workload of the story. Its namespace is also the name of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct App {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    /// Its image is `registry.example/NAME:1.RELEASE.0`.
    pub(super) release: u32,
    pub(super) replicas: u32,
}

/// What stands before the apps of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentinel {
    pub(super) environment: &'static str,
    /// Its image is `registry.example/gate:2.RELEASE.0`.
    pub(super) release: u32,
    pub(super) replicas: u32,
}

/// Which way a policy opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Into the app, from its sentinel.
    Ingress,
    /// Out of the sentinel, to the app.
    Egress,
}

/// One of the two policies that let an app's sentinel reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// The namespace of the app.
    pub(super) environment: &'static str,
    /// The name of the app.
    pub(super) app: &'static str,
    pub(super) direction: Direction,
}

/// Anything that the control plane wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    App(App),
    Sentinel(Sentinel),
    Policy(Policy),
}

impl App {
    pub(super) fn tag(&self) -> String {
        format!("1.{}.0", self.release)
    }

    pub(super) fn image(&self) -> String {
        format!("registry.example/{}:{}", self.name, self.tag())
    }

    /// The policies between it and its sentinel.
    pub(super) fn policies(&self) -> [Policy; 2] {
        [Direction::Ingress, Direction::Egress].map(|direction| Policy {
            environment: self.namespace,
            app: self.name,
            direction,
        })
    }
}

impl Sentinel {
    pub(super) fn name(&self) -> String {
        format!("{}-gate", self.environment)
    }

    pub(super) fn tag(&self) -> String {
        format!("2.{}.0", self.release)
    }

    pub(super) fn image(&self) -> String {
        format!("registry.example/gate:{}", self.tag())
    }
}

impl Policy {
    pub(super) fn namespace(&self) -> &'static str {
        match self.direction {
            Direction::Ingress => self.environment,
            Direction::Egress => SENTINELS,
        }
    }

    pub(super) fn name(&self) -> String {
        let direction = match self.direction {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        };
        format!("sentinel-{direction}-to-{}", self.app)
    }
}

impl Wish {
    /// The name of its first object.
    pub(super) fn name(&self) -> String {
        match self {
            Self::App(app) => app.name.to_owned(),
            Self::Sentinel(sentinel) => sentinel.name(),
            Self::Policy(policy) => policy.name(),
        }
    }

    /// By which krane keeps it.
    pub(super) fn key(&self) -> ObjectKey {
        let namespace = match self {
            Self::App(app) => app.namespace,
            Self::Sentinel(_) => SENTINELS,
            Self::Policy(policy) => policy.namespace(),
        };
        ObjectKey::new(namespace, self.name())
    }

    /// Whose it is.
    pub(super) const fn controller(&self) -> Controller {
        match self {
            Self::App(_) => Controller::Deployments,
            Self::Sentinel(_) => Controller::Sentinels,
            Self::Policy(_) => Controller::Cilium,
        }
    }

    /// What nonsense the control plane may want of it, behind its name.
    pub(super) const fn nonsense(&self) -> &'static str {
        match self {
            Self::App(_) | Self::Sentinel(_) => "with the image \"no image at all\"",
            Self::Policy(_) => "with the port \"80-90\"",
        }
    }

    /// What somebody with kubectl does to it, behind its name.
    pub(super) const fn tampering(&self) -> &'static str {
        match self {
            Self::App(_) => "by hand: another image",
            Self::Sentinel(_) => "by hand: no replicas",
            Self::Policy(_) => "by hand: open to the whole world",
        }
    }

    /// How it is once that is undone, behind its name.
    pub(super) fn mended(&self) -> String {
        match self {
            Self::App(app) => format!("is at {} again", app.tag()),
            Self::Sentinel(sentinel) => format!("has {} again", count(sentinel.replicas)),
            Self::Policy(_) => "opens to no one else any more".to_owned(),
        }
    }

    /// How it is while its newest state is set aside, behind its name.
    pub(super) const fn meanwhile(&self) -> &'static str {
        match self {
            Self::App(_) | Self::Sentinel(_) => "runs on as it was",
            Self::Policy(_) => "stays in force as it was",
        }
    }
}

impl From<App> for Wish {
    fn from(app: App) -> Self {
        Self::App(app)
    }
}

impl From<Sentinel> for Wish {
    fn from(sentinel: Sentinel) -> Self {
        Self::Sentinel(sentinel)
    }
}

impl From<Policy> for Wish {
    fn from(policy: Policy) -> Self {
        Self::Policy(policy)
    }
}

/// So many instances.
pub(super) fn count(instances: u32) -> String {
    match instances {
        1 => "1 instance".to_owned(),
        many => format!("{many} instances"),
    }
}
