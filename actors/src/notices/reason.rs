//! What of all that happens is told as an Event, and in which words.

use krane_domain::backlog::TroubleKind;
use krane_domain::ids::WorkKey;
use krane_ports::Reason;

use crate::events::Happening;

/// What something is told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// One key.
    Key(WorkKey),
    /// Whatever the controller's brake holds.
    Held,
    /// krane itself.
    Agent,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) about: About,
    pub(super) reason: Reason,
    pub(super) note: String,
}

/// The words for this happening, if it is one that is told.
pub(super) fn said(what: &Happening) -> Option<Said> {
    let (about, reason, note) = match what {
        Happening::Troubled { key, trouble, .. } => {
            let reason = match trouble.kind {
                TroubleKind::Quarantined => Reason::Quarantined,
                TroubleKind::Misconfigured => Reason::ApplyRefused,
                TroubleKind::Transient => Reason::ApplyFailed,
                TroubleKind::Held => Reason::OnHold,
                // It comes by itself: an object that is on its way out, a kind that is installed.
                TroubleKind::Waiting => return None,
            };
            (About::Key(key.clone()), reason, trouble.to_string())
        }
        Happening::Recovered { key, attempts } => {
            let note = match attempts {
                1 => format!("{key} is as wanted again, after 1 attempt that failed"),
                _ => format!("{key} is as wanted again, after {attempts} attempts that failed"),
            };
            (About::Key(key.clone()), Reason::Recovered, note)
        }
        // The kubelet's own words are left out: they may quote what a container was started with.
        Happening::PodsCannotStart { key, .. } => (
            About::Key(WorkKey::Workload(key.clone())),
            Reason::PodsCannotStart,
            "its pods cannot start; look at the Events of its pods".to_owned(),
        ),
        Happening::DeletesHeld { found } => (
            About::Held,
            Reason::DeleteHeld,
            format!(
                "the control plane does not know this object and {} more; none of them is deleted; \
                 to let them go: krane allow-deletes",
                found.saturating_sub(1)
            ),
        ),
        Happening::DeletesAllowed { objects } => (
            About::Agent,
            Reason::DeletesAllowed,
            match objects {
                1 => "a person allowed the deletion of 1 object that was held".to_owned(),
                _ => format!("a person allowed the deletion of {objects} objects that was held"),
            },
        ),
        Happening::Asked { action, key } => (
            key.as_ref().map_or(About::Agent, |key| {
                About::Key(WorkKey::Workload(key.clone()))
            }),
            Reason::Asked,
            format!("a person asked krane: {action}"),
        ),
        Happening::Applied { .. }
        | Happening::Deleted { .. }
        | Happening::Repaired { .. }
        | Happening::StreamOpened { .. }
        | Happening::StreamEnded { .. }
        | Happening::Reported { .. }
        | Happening::ReportFailed { .. }
        | Happening::ReportsRecovered
        | Happening::BreakerOpened
        | Happening::ApiServerLost { .. }
        | Happening::ApiServerRecovered { .. }
        | Happening::ResyncChanged { .. }
        | Happening::Disowned { .. }
        | Happening::LeaseWon
        | Happening::LeaseLost { .. }
        | Happening::ActorFailed { .. }
        | Happening::ActorRestarted { .. } => return None,
    };
    Some(Said {
        about,
        reason,
        note,
    })
}
