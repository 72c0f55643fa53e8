//! How a demo ended.

use serde::Serialize;

/// What was wanted, what became of it, and whether all is well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename = "summary")]
pub(super) struct Summary {
    pub(super) seed: u64,
    pub(super) elapsed_ms: u128,
    /// Acts of the story that were played to their end.
    pub(super) acts: usize,
    /// Versions the control plane sent.
    pub(super) states_sent: u64,
    /// The highest version below which everything was applied or replaced.
    pub(super) states_applied: u64,
    /// Apps that are wanted and can be.
    pub(super) apps_wanted: usize,
    /// Of these, how many are in the cluster as they are wanted.
    pub(super) apps_in_place: usize,
    /// Of these, how many the control plane was told of as they are.
    pub(super) apps_reported: usize,
    /// Reports the control plane took.
    pub(super) reports_delivered: u64,
    /// States in quarantine that nobody poisoned on purpose.
    pub(super) quarantined: usize,
    /// States that were poisoned on purpose and are in quarantine.
    pub(super) poisoned: usize,
    /// Actors that were started again.
    pub(super) restarts: u64,
    /// Whether everything wanted is in place and reported, and nothing is set aside by mistake.
    pub(super) ok: bool,
    /// What is not as it should be.
    pub(super) open: Vec<String>,
}

impl Summary {
    pub(super) fn sentence(&self) -> String {
        let Self {
            acts,
            states_sent,
            apps_wanted,
            apps_in_place,
            reports_delivered,
            restarts,
            ..
        } = self;
        let aside = match self.poisoned + self.quarantined {
            0 => String::new(),
            count => format!(" · {count} set aside"),
        };
        format!(
            "{apps_in_place} of {apps_wanted} apps in place and reported · {states_sent} states in \
             {acts} acts · {reports_delivered} reports · {restarts} actor restarts{aside}"
        )
    }
}
