//! Events of the cluster.

use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::object::ObjectRef;
use krane_domain::refusal::Refusal;

/// Events of the cluster, for people who look there.
#[async_trait]
pub trait EventSink: Send + Sync + 'static {
    /// Makes an Event. Returns its name.
    async fn create(&self, notice: &Notice) -> Result<Arc<str>, Refusal>;

    /// What the Event of this name says has happened again, so often by now. `false`: there is no
    /// such Event any more.
    async fn recur(&self, notice: &Notice, event: &str, count: u32) -> Result<bool, Refusal>;
}

/// One Event to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about: of two things that are told on one namespace each is told.
    pub subject: Arc<str>,
    /// The object it is about …
    pub regarding: ObjectRef,
    /// … if it exists, which one.
    pub uid: Option<Arc<str>>,
    /// What kind of thing happened.
    pub reason: Reason,
    /// The sentence, with what to do about it. Never secret content.
    pub note: String,
}

/// Why an Event is made: a closed set, in the style of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// An apply failed and is tried again soon.
    ApplyFailed,
    /// Permissions, admission or a foreign object stand in the way.
    ApplyRefused,
    /// The state is at fault and set aside.
    Quarantined,
    /// A person put the object on hold.
    OnHold,
    /// It is as wanted again.
    Recovered,
    /// Its pods cannot start.
    PodsCannotStart,
    /// The control plane does not know it, and it is not deleted.
    DeleteHeld,
    /// A person allowed deletions that were held.
    DeletesAllowed,
    /// A person asked for something else.
    Asked,
}

impl Reason {
    /// The word in the Event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApplyFailed => "ApplyFailed",
            Self::ApplyRefused => "ApplyRefused",
            Self::Quarantined => "Quarantined",
            Self::OnHold => "OnHold",
            Self::Recovered => "Recovered",
            Self::PodsCannotStart => "PodsCannotStart",
            Self::DeleteHeld => "DeleteHeld",
            Self::DeletesAllowed => "DeletesAllowed",
            Self::Asked => "Asked",
        }
    }

    /// What krane was about to do, or did.
    pub const fn action(self) -> &'static str {
        match self {
            Self::ApplyFailed
            | Self::ApplyRefused
            | Self::Quarantined
            | Self::OnHold
            | Self::Recovered => "Apply",
            Self::PodsCannotStart => "Observe",
            Self::DeleteHeld | Self::DeletesAllowed => "Delete",
            Self::Asked => "Operate",
        }
    }

    /// Whether somebody should look.
    pub const fn is_warning(self) -> bool {
        match self {
            Self::ApplyFailed
            | Self::ApplyRefused
            | Self::Quarantined
            | Self::PodsCannotStart
            | Self::DeleteHeld => true,
            Self::OnHold | Self::Recovered | Self::DeletesAllowed | Self::Asked => false,
        }
    }

    /// Whether it tells how an apply went: the next one of these makes it untrue.
    pub const fn is_of_apply(self) -> bool {
        match self {
            Self::ApplyFailed
            | Self::ApplyRefused
            | Self::Quarantined
            | Self::OnHold
            | Self::Recovered => true,
            Self::PodsCannotStart | Self::DeleteHeld | Self::DeletesAllowed | Self::Asked => false,
        }
    }
}
