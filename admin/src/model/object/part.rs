//! One object of a workload: desired against live, and who owns what differs.

use krane_actors::store::ObjectExplanation;
use krane_domain::backlog::Standing;
use krane_domain::drift::{Attributed, Decision, Explanation};
use krane_domain::object::ObjectRef;
use krane_domain::plan::Role;
use serde::Serialize;

use super::super::controllers::trouble_level;
use super::super::workloads::WAITS_TO_ROLL;
use super::super::{Epoch, Level, Stamp, WorkloadView};

/// One object that a workload is, has or needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartView {
    /// Kind, namespace and name.
    pub object: String,
    /// What it is to the workload, one of a closed set.
    pub role: &'static str,
    /// How it compares, one of a closed set.
    pub state: &'static str,
    /// How bad that is.
    pub level: Level,
    /// Why it is so, or what happens next.
    pub why: Option<String>,
    /// When the hold ends, if it is on hold.
    pub hold_ends: Option<Stamp>,
    /// When krane tries again by itself.
    pub next_try: Option<Stamp>,
    /// One of these, whichever was found last: what programs read before both had names.
    pub until: Option<Stamp>,
    /// The fields that are not as wanted.
    pub differences: Vec<DifferenceView>,
    /// Others that own something where only krane may.
    pub foreign: Vec<ForeignView>,
    /// What shows it, with its managers, to someone with rights of their own.
    pub command: Option<String>,
}

/// One field that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferenceView {
    /// Where.
    pub path: String,
    /// In which way, one of a closed set.
    pub kind: &'static str,
    /// The wanted value, if there is one and it may be shown.
    pub wanted: Option<String>,
    /// The live value, if there is one and it may be shown.
    pub live: Option<String>,
    /// The field managers that own it.
    pub owners: Vec<String>,
    /// All of that in words.
    pub text: String,
}

/// Another manager that owns something where only krane may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForeignView {
    /// The field manager.
    pub manager: String,
    /// What it owns there.
    pub paths: Vec<String>,
}

pub(super) fn view(object: &ObjectExplanation, workload: &WorkloadView, epoch: &Epoch) -> PartView {
    let mut part = PartView {
        object: object.reference.to_string(),
        role: object.role.name(),
        state: "as wanted",
        level: Level::Good,
        why: None,
        hold_ends: None,
        next_try: None,
        until: None,
        differences: Vec::new(),
        foreign: Vec::new(),
        command: object.is_live.then(|| command(&object.reference)),
    };
    if let Some(explanation) = &object.explanation {
        compare(explanation, &mut part);
    } else {
        (part.state, part.level) = bare(object, workload);
    }
    if let Some(Standing::Trouble(trouble)) = &object.standing {
        part.level = part.level.max(trouble_level(trouble.trouble.kind));
        part.why = Some(trouble.trouble.to_string());
        part.next_try = Some(epoch.at(trouble.retry_at));
        part.until = part.next_try;
    }
    part
}

/// What nothing is rendered for, to be compared with.
fn bare(object: &ObjectExplanation, workload: &WorkloadView) -> (&'static str, Level) {
    match (object.role, object.is_live) {
        (Role::Unneeded, _) => ("to be deleted", Level::Busy),
        (Role::Primary | Role::Dependant, true) if workload.state == "deleting" => {
            ("to be deleted", Level::Busy)
        }
        // Of a state that is no state nobody knows what it wants.
        (Role::Primary, true) => ("as it was", Level::Warn),
        (_, true) => ("there", Level::Good),
        (_, false) => ("missing", Level::Busy),
    }
}

fn compare(explanation: &Explanation, part: &mut PartView) {
    part.differences = explanation.differences.iter().map(difference).collect();
    part.foreign = explanation
        .foreign
        .iter()
        .map(|foreign| ForeignView {
            manager: foreign.manager.clone(),
            paths: foreign.paths.clone(),
        })
        .collect();
    let (state, level, why): (_, _, Option<String>) = match &explanation.decision {
        Decision::InPlace if explanation.is_fused => (
            "differs, left alone",
            Level::Warn,
            Some(
                "krane's own apply could not change it: something rewrites it on the way in".into(),
            ),
        ),
        Decision::InPlace if explanation.waits_to_roll => {
            ("waits to roll", Level::Good, Some(WAITS_TO_ROLL.into()))
        }
        Decision::InPlace => ("as wanted", Level::Good, None),
        Decision::Create => ("missing", Level::Busy, None),
        Decision::Update { .. } if explanation.is_older_rendering => (
            "of another krane",
            Level::Busy,
            Some("only its form seems to differ: it is rewritten when nothing else waits".into()),
        ),
        Decision::Update { .. } => ("differs", Level::Busy, None),
        Decision::Adopt { .. } => (
            "owned by others too",
            Level::Busy,
            Some("krane takes over what only krane may own".into()),
        ),
        Decision::Terminating => (
            "being deleted",
            Level::Busy,
            Some("it is made anew when it is gone; look at its finalizers if it stays".into()),
        ),
        Decision::NotOurs => (
            "not krane's",
            Level::Bad,
            Some("it lacks the label app.kubernetes.io/managed-by=krane and is left alone".into()),
        ),
        Decision::Held { until, .. } => {
            part.hold_ends = Stamp::of_unix_seconds(*until);
            part.until = part.hold_ends;
            let why =
                "a person put it on hold; remove the annotation krane.unkey.com/hold to end that";
            ("on hold", Level::Warn, Some(why.into()))
        }
        Decision::Recreate { .. } => (
            "to be replaced",
            Level::Busy,
            Some("what differs cannot be changed in place".into()),
        ),
        Decision::Refuse(invalid) => ("cannot be changed", Level::Bad, Some(invalid.to_string())),
    };
    (part.state, part.level) = (state, level);
    part.why = match (why, &explanation.ignored_hold) {
        (None, Some(problem)) => Some(format!("its hold is not obeyed: {problem}")),
        (why, _) => why,
    };
}

fn difference(found: &Attributed) -> DifferenceView {
    let Attributed { difference, owners } = found;
    let by = match owners.as_slice() {
        [] => String::new(),
        owners => format!(" (owned by {})", owners.join(", ")),
    };
    DifferenceView {
        path: difference.path.clone(),
        kind: difference.kind.name(),
        wanted: difference.wanted.clone(),
        live: difference.live.clone(),
        owners: owners.clone(),
        text: format!("{difference}{by}"),
    }
}

fn command(reference: &ObjectRef) -> String {
    let kind = reference.resource.kind().to_lowercase();
    let name = &reference.name;
    if reference.namespace.is_empty() {
        format!("kubectl get {kind} {name} -o yaml --show-managed-fields")
    } else {
        let namespace = &reference.namespace;
        format!("kubectl -n {namespace} get {kind} {name} -o yaml --show-managed-fields")
    }
}
