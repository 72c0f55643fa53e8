//! The kinds of desired state: one folder each, one variant each.
//!
//! Actors handle [`Desired`] without looking into it; everything that differs between kinds is
//! a function here.

pub mod deployment;

use crate::ids::{Controller, ObjectKey, SharedKey};
use crate::object::{Rendered, Resource};

/// A validated desired state of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Desired {
    /// A customer workload.
    Deployment(Box<deployment::DesiredDeployment>),
}

/// What a controller watches: one list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind of objects.
    pub resource: Resource,
    /// Restrict to one namespace; all when absent.
    pub namespace: Option<&'static str>,
    /// Label selector, empty for none.
    pub label_selector: String,
    /// Field selector, empty for none.
    pub field_selector: String,
}
