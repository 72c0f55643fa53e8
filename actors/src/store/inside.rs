//! A look inside a store, and a hand in it, for tests: no release build has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krane_domain::backlog::Backlog;
use krane_domain::brake::Brake;
use krane_domain::drift::FuseMemory;
use krane_domain::ids::{Moment, ObjectKey, SharedKey};
use krane_domain::members::Members;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::outbox::Outbox;
use krane_domain::upgrades::Rolls;
use krane_domain::view::View;

use super::{BrokenWatch, Memory, ResyncSummary, Store, StreamMemory};
use crate::breaker::Breaker;
#[cfg(test)]
use crate::followers::Followers;

/// What is behind the lock, part by part.
#[derive(Debug)]
#[allow(
    missing_docs,
    reason = "the fields of `Memory`, which say what they are"
)]
pub struct Inside<'a> {
    pub backlog: &'a mut Backlog,
    pub wanted: &'a mut Members,
    pub view: &'a mut View,
    pub is_listed: &'a mut bool,
    pub listed: &'a mut BTreeMap<Resource, String>,
    pub kinds_missing: &'a mut BTreeSet<Resource>,
    pub broken_watches: &'a mut BTreeMap<Resource, BrokenWatch>,
    pub outbox: &'a mut Outbox,
    pub to_observe: &'a mut BTreeSet<ObjectKey>,
    pub brake: &'a mut Brake,
    pub breaker: &'a mut Breaker,
    pub fuses: &'a mut BTreeMap<ObjectRef, FuseMemory>,
    pub foreign_namespaces: &'a mut BTreeSet<Arc<str>>,
    pub memberless: &'a mut BTreeMap<SharedKey, Moment>,
    pub stream: &'a mut StreamMemory,
    pub last_resync: &'a mut Option<ResyncSummary>,
    pub replaced_at: &'a mut BTreeMap<ObjectKey, Moment>,
    pub outdated: &'a mut BTreeMap<ObjectKey, usize>,
    pub config_errors: &'a mut BTreeMap<ObjectKey, Arc<str>>,
    pub rolls: &'a mut Rolls,
    #[cfg(test)]
    pub(crate) followers: &'a mut Followers,
}

impl Store {
    /// Lets a test see and arrange what is known.
    pub fn inside<T>(&self, look: impl FnOnce(&mut Inside<'_>) -> T) -> T {
        self.with(|memory| {
            look(&mut Inside {
                backlog: &mut memory.backlog,
                wanted: &mut memory.wanted,
                view: &mut memory.view,
                is_listed: &mut memory.is_listed,
                listed: &mut memory.listed,
                kinds_missing: &mut memory.kinds_missing,
                broken_watches: &mut memory.broken_watches,
                outbox: &mut memory.outbox,
                to_observe: &mut memory.to_observe,
                brake: &mut memory.brake,
                breaker: &mut memory.breaker,
                fuses: &mut memory.fuses,
                foreign_namespaces: &mut memory.foreign_namespaces,
                memberless: &mut memory.memberless,
                stream: &mut memory.stream,
                last_resync: &mut memory.last_resync,
                replaced_at: &mut memory.replaced_at,
                outdated: &mut memory.outdated,
                config_errors: &mut memory.config_errors,
                rolls: &mut memory.rolls,
                #[cfg(test)]
                followers: &mut memory.followers,
            })
        })
    }

    /// Lets a test call what actors call.
    pub fn arrange<T>(&self, call: impl FnOnce(&mut Memory) -> T) -> T {
        self.with(call)
    }
}
