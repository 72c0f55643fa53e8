//! What a write is for, and what it undoes.

/// Stands for the edit "deleted".
pub(super) const GONE: u64 = 0;

/// What a write is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repair {
    /// The state is brought about for the first time.
    No,
    /// The state was in place, so a difference is drift.
    Drift(u64),
    /// The object was in place; a difference is drift, or its members changed.
    DriftOrMembers(u64),
}

impl Repair {
    /// For an object of a workload.
    pub(super) const fn workload(was_settled: bool) -> Self {
        if was_settled {
            Self::Drift(GONE)
        } else {
            Self::No
        }
    }

    /// For an object that workloads share.
    pub(super) const fn shared(was_settled: bool) -> Self {
        if was_settled {
            Self::DriftOrMembers(GONE)
        } else {
            Self::No
        }
    }

    pub(super) const fn of(self, edit: u64) -> Self {
        match self {
            Self::No => Self::No,
            Self::Drift(_) => Self::Drift(edit),
            Self::DriftOrMembers(_) => Self::DriftOrMembers(edit),
        }
    }

    pub(super) const fn is_drift(self) -> bool {
        matches!(self, Self::Drift(_))
    }

    pub(super) const fn edit(self) -> Option<u64> {
        match self {
            Self::No => None,
            Self::Drift(edit) | Self::DriftOrMembers(edit) => Some(edit),
        }
    }
}
