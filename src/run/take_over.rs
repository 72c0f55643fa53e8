//! What krane would do in a cluster that another agent, or another version of krane, ran before,
//! and what it would leave lying there. Reads only.

mod leftovers;
mod plan;

use krane_domain::kinds::Rules;
use krane_kubernetes::MetadataLister;
use serde::Serialize;

use super::assembly::Ports;

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    /// Per controller.
    pub controllers: Vec<Summary>,
    /// What krane would write or delete, and why.
    pub changes: Vec<Planned>,
    /// What nobody needs any more and krane does not delete.
    pub leftovers: Vec<Leftover>,
    /// What could not be found out.
    pub problems: Vec<String>,
}

/// One controller in numbers.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Its name.
    pub controller: &'static str,
    /// Objects that are there with an id of the control plane.
    pub objects: usize,
    /// Of the objects looked at, those that are as wanted.
    pub in_place: usize,
    /// Living pods that no krane made: they stay until they end by themselves.
    pub pods_of_others: usize,
}

/// One write or delete that krane would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// What.
    pub action: Action,
    /// Which object, as `Kind namespace/name`.
    pub object: String,
    /// Where it differs, without values; empty when it is not there or goes.
    pub paths: Vec<String>,
}

/// What would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Made.
    Create,
    /// Changed, at once.
    Change,
    /// Changed, last of all: only its rendering seems to differ.
    RenderAnew,
    /// Its pods roll when its turn comes: only the form of their template differs.
    Roll,
    /// Given our labels: another agent left it under a name that krane gives.
    TakeOver,
    /// Deleted and made anew.
    Recreate,
    /// Deleted: the control plane wants it gone.
    Delete,
    /// Deleted when the control plane still does not know it, as far as the brake allows.
    DeleteUnknown,
    /// Set aside: it cannot be made so.
    Refuse,
}

impl Action {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Create => "make",
            Self::Change => "change",
            Self::RenderAnew => "render anew, last of all",
            Self::Roll => "roll, one at a time (safety.upgrades)",
            Self::TakeOver => "take over",
            Self::Recreate => "delete and make anew",
            Self::Delete => "delete",
            Self::DeleteUnknown => "delete if still unknown to the control plane",
            Self::Refuse => "set aside",
        }
    }
}

/// Something that nobody needs any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leftover {
    /// Which object, as `Kind namespace/name`.
    pub object: String,
    /// What it was for, and when it can go.
    pub why: &'static str,
    /// The command that deletes it.
    pub command: String,
}

/// What nobody needs any more, alone.
pub(crate) async fn left_by_others(lister: &MetadataLister) -> Findings {
    let mut findings = Findings::default();
    leftovers::find(lister, &mut findings).await;
    findings
}

/// Looks at everything once.
pub(super) async fn survey(sides: &[Ports], rules: &Rules, lister: &MetadataLister) -> Findings {
    let mut findings = Findings::default();
    for side in sides {
        plan::plan(side, rules, &mut findings).await;
    }
    leftovers::find(lister, &mut findings).await;
    findings
        .changes
        .sort_by(|one, other| (one.action, &one.object).cmp(&(other.action, &other.object)));
    findings.changes.dedup();
    findings.leftovers.sort();
    findings
}
