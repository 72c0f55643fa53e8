//! Defects on purpose, for tests that prove that the tests would find them.
//!
//! In a release build none can be switched on and the questions cost nothing. A
//! switch belongs to one thread, so that runs side by side do not disturb each other.

/// A defect that somebody could introduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The cursor passes a state when it arrives.
    CursorMovesOnReceipt,
    /// A state older than the known one replaces it.
    OlderStateWins,
    /// An answer replaces a state that arrived after its question was asked.
    AnswerOverwritesNewerState,
    /// A state that failed is never tried again.
    QuarantineForgets,
    /// A lane may begin for a key that has one.
    DuplicateLanes,
    /// Any number of objects is deleted on `not_found`.
    BrakeOff,
    /// A difference in an object that is in place is no reason to write.
    DriftIgnored,
    /// One `not_found` is enough to delete.
    NotFoundBelievedOnce,
    /// A question without an answer counts as `not_found`.
    ErrorTakenForNotFound,
    /// A workload is written though its isolation policy is not in place.
    PolicyAfterWorkload,
    /// Objects are deleted whatever their uid.
    DeleteWithoutUid,
    /// Existing objects are applied without their uid.
    ApplyWithoutUid,
    /// A report that did not get through is taken for delivered.
    ReportLostOnFailure,
    /// What a relist does not show any more is kept.
    RelistKeepsGone,
    /// A watch that ended is not opened again.
    WatchNotReopened,
    /// The keys of lanes that died with their reconciler are not looked at again.
    LanesLostOnRestart,
    /// What was in the mailbox of an actor that died is lost: its successor does not look at what
    /// is to be done.
    MailboxLostOnRestart,
    /// A stream that ended is not opened again.
    StreamNotReopened,
    /// A running pod is reported before it is ready.
    ReportsUnreadyAsRunning,
    /// An object that is not ours is written all the same.
    WritesWhatIsNotOurs,
    /// What hangs on a sentinel is left to whatever becomes of it when the sentinel goes.
    CompanionsLeftBehind,
    /// With a sentinel goes the gossip pair of another one of its environment.
    AnotherGossipPairDeleted,
    /// What somebody does to an object that hangs on a workload is no reason to look at it.
    CompanionDriftUnseen,
    /// The image of a sentinel is reported as running while it is rolled out.
    ImageReportedTooSoon,
    /// A policy of the control plane is applied without our label.
    PolicyLabelNotForced,
    /// The right to write lasts as long as the lease does for others, and then some.
    LeaseOutlivesItsWindow,
    /// A renewal grants from the moment of its answer.
    RenewalCountsFromItsAnswer,
    /// A lease is taken over before its time has run out.
    LeaseTakenTooSoon,
    /// A lane writes on in the term after its own: neither is it ended with its term, nor does it look.
    WritesWithoutALook,
}

impl Bug {
    /// Those that only several processes can show.
    pub const OF_THE_LEASE: [Self; 4] = [
        Self::LeaseOutlivesItsWindow,
        Self::RenewalCountsFromItsAnswer,
        Self::LeaseTakenTooSoon,
        Self::WritesWithoutALook,
    ];

    /// All others.
    pub const ALL: [Self; 25] = [
        Self::CursorMovesOnReceipt,
        Self::OlderStateWins,
        Self::AnswerOverwritesNewerState,
        Self::QuarantineForgets,
        Self::DuplicateLanes,
        Self::BrakeOff,
        Self::DriftIgnored,
        Self::NotFoundBelievedOnce,
        Self::ErrorTakenForNotFound,
        Self::PolicyAfterWorkload,
        Self::DeleteWithoutUid,
        Self::ApplyWithoutUid,
        Self::ReportLostOnFailure,
        Self::RelistKeepsGone,
        Self::WatchNotReopened,
        Self::LanesLostOnRestart,
        Self::MailboxLostOnRestart,
        Self::StreamNotReopened,
        Self::ReportsUnreadyAsRunning,
        Self::WritesWhatIsNotOurs,
        Self::CompanionsLeftBehind,
        Self::AnotherGossipPairDeleted,
        Self::CompanionDriftUnseen,
        Self::ImageReportedTooSoon,
        Self::PolicyLabelNotForced,
    ];
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Switches one defect on, on this thread, and the one before off.
#[cfg(debug_assertions)]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this defect is switched on.
#[cfg(debug_assertions)]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether this defect is switched on.
#[cfg(not(debug_assertions))]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}
