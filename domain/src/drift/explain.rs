//! A judgement for people: what differs, and who made it so.

use serde_json::Value;

use super::compare::{self, is_own};
use super::difference::Difference;
use super::foreign::{Foreign, below, is_within};
use super::{Decision, FuseMemory, judge};
use crate::object::{LiveObject, Rendered};

/// What krane thinks of one live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What it would do.
    pub decision: Decision,
    /// Every field that is not as wanted, also where nothing is done about it.
    pub differences: Vec<Attributed>,
    /// Others that own something where only krane may.
    pub foreign: Vec<Foreign>,
    /// Whether what differs seems to say only that an earlier krane rendered it (D44).
    pub is_older_rendering: bool,
    /// Whether its pod template is kept as another renderer made it, until its turn to roll (D44).
    pub waits_to_roll: bool,
    /// Whether its own apply could not remove what differs, so that it is left alone.
    pub is_fused: bool,
    /// Why a hold annotation is not obeyed.
    pub ignored_hold: Option<String>,
}

/// A difference with those who own the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributed {
    /// The difference.
    pub difference: Difference,
    /// Field managers other than krane's applies that own the field, or something in it. Empty for
    /// what only krane owns, or nobody.
    pub owners: Vec<String>,
}

/// As [`judge`], with everything that a person asks next.
pub fn explain(
    rendered: &Rendered,
    live: Option<&LiveObject>,
    fuse: Option<&FuseMemory>,
    unix_seconds: u64,
) -> Explanation {
    let judgement = judge(rendered, live, fuse, unix_seconds);
    let tree = live.map(LiveObject::value).unwrap_or_default();
    // Of what is not krane's, or about to go, nobody wants to know how it differs.
    let is_compared = !matches!(
        judgement.decision,
        Decision::Create | Decision::NotOurs | Decision::Terminating
    );
    let differences = if is_compared {
        attributed(
            super::worth_a_write(compare::differences(rendered, &tree)),
            &tree,
        )
    } else {
        Vec::new()
    };
    let is_older_rendering = match (&judgement.decision, live) {
        (Decision::Update { differences, .. }, Some(live)) => {
            crate::upgrades::is_older_rendering(live, differences)
        }
        (_, Some(_) | None) => false,
    };
    let foreign = match &judgement.decision {
        Decision::Adopt { foreign, .. } => foreign.clone(),
        Decision::InPlace
        | Decision::Create
        | Decision::Update { .. }
        | Decision::Terminating
        | Decision::NotOurs
        | Decision::Held { .. }
        | Decision::Recreate { .. }
        | Decision::Refuse(_) => Vec::new(),
    };
    Explanation {
        decision: judgement.decision,
        differences,
        foreign,
        is_older_rendering,
        waits_to_roll: rendered.keeps_template,
        is_fused: !judgement.fused.is_empty(),
        ignored_hold: judgement.ignored_hold,
    }
}

/// The field managers, krane's applies left out, that own a field that differs; sorted.
pub fn owners_of(differences: &[Difference], live: &LiveObject) -> Vec<String> {
    let tree = live.value();
    let all = attributed(differences.to_vec(), &tree);
    let mut owners: Vec<String> = all.into_iter().flat_map(|found| found.owners).collect();
    owners.sort();
    owners.dedup();
    owners
}

fn attributed(differences: Vec<Difference>, tree: &Value) -> Vec<Attributed> {
    let entries = tree.pointer("/metadata/managedFields");
    let others: Vec<(&str, &Value)> = entries
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|entry| !is_own(entry))
        .filter_map(|entry| {
            let manager = entry.get("manager").and_then(Value::as_str)?;
            Some((manager, entry.get("fieldsV1")?))
        })
        .collect();
    differences
        .into_iter()
        .map(|difference| {
            let owning = others
                .iter()
                .filter(|(_, fields)| owns(fields, "", &difference.path));
            let mut owners: Vec<String> =
                owning.map(|(manager, _)| (*manager).to_owned()).collect();
            owners.sort();
            owners.dedup();
            Attributed { difference, owners }
        })
        .collect()
}

/// Whether these fields, which begin at `path`, hold the wanted one, something in it, or what it is
/// a part of.
fn owns(fields: &Value, path: &str, wanted: &str) -> bool {
    let Some(parts) = fields.as_object() else {
        return false;
    };
    let mut parts = parts.iter().filter(|(name, _)| *name != ".").peekable();
    // A leaf above the field: it is owned as a whole.
    if parts.peek().is_none() {
        return true;
    }
    parts.any(|(name, node)| {
        let here = below(path, name);
        is_within(&here, wanted) || (is_within(wanted, &here) && owns(node, &here, wanted))
    })
}
