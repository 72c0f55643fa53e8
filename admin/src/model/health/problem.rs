//! Something that is wrong, for people and for programs.

use serde::Serialize;

use crate::model::{Level, Stamp};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad.
    pub level: Level,
    /// Of which kind.
    pub kind: ProblemKind,
    /// What.
    pub what: String,
    /// Why.
    pub why: Option<String>,
    /// What to do.
    pub remedy: String,
    /// Since when, where that is known.
    pub since: Option<Stamp>,
    /// When krane tries again by itself.
    pub next_try: Option<Stamp>,
    /// The controller it is about, if it is about one.
    pub controller: Option<&'static str>,
    /// All controllers it is about.
    pub controllers: Vec<&'static str>,
    /// The object, actor or watched kinds it is about.
    pub name: Option<String>,
    /// The status that was answered: of HTTP, of gRPC or how an actor ended.
    pub code: Option<String>,
    /// The part of the page with more about it.
    pub part: &'static str,
}

/// What may be wrong: a closed set, which docs/operations.md explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The topmost actor makes no rounds.
    RootStuck,
    /// An actor is down and starts again.
    ActorRestarting,
    /// An actor failed too often and comes back with fresh state.
    ActorParked,
    /// The Kubernetes API does not answer.
    ApiServerAway,
    /// Some kinds cannot be watched.
    WatchBroken,
    /// The first lists of the cluster failed.
    ClusterUnread,
    /// The control plane does not answer.
    ControlPlaneAway,
    /// A desired-state stream is not open.
    StreamDown,
    /// Reports and questions do not get through.
    CallsPaused,
    /// A state cannot be brought about.
    Quarantined,
    /// The cluster does not allow it.
    Misconfigured,
    /// It fails for a passing reason.
    Retrying,
    /// A person put an object on hold.
    Held,
    /// The brake holds deletions.
    DeletesHeld,
    /// The control plane refuses reports.
    ReportsRefused,
    /// The Lease cannot be read or written.
    LeaseUnreachable,
    /// A file of a secret cannot be used any more.
    FileUnusable,
    /// `safety.writes` is off.
    WritesOff,
}

impl Problem {
    /// A problem of this kind that is about nothing yet.
    pub(super) fn of(kind: ProblemKind, level: Level) -> Self {
        Self {
            level,
            kind,
            what: String::new(),
            why: None,
            remedy: String::new(),
            since: None,
            next_try: None,
            controller: None,
            controllers: Vec::new(),
            name: None,
            code: None,
            part: "controllers",
        }
    }

    /// It is about these controllers.
    pub(super) fn about(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.controllers = names.into_iter().collect();
        self.controller = match self.controllers[..] {
            [only] => Some(only),
            _ => None,
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::ProblemKind;

    #[test]
    fn the_docs_explain_every_kind() {
        use ProblemKind as Kind;
        let docs = include_str!("../../../../docs/operations.md");
        let kinds = [
            Kind::RootStuck,
            Kind::ActorRestarting,
            Kind::ActorParked,
            Kind::ApiServerAway,
            Kind::WatchBroken,
            Kind::ClusterUnread,
            Kind::ControlPlaneAway,
            Kind::StreamDown,
            Kind::CallsPaused,
            Kind::Quarantined,
            Kind::Misconfigured,
            Kind::Retrying,
            Kind::Held,
            Kind::DeletesHeld,
            Kind::ReportsRefused,
            Kind::LeaseUnreachable,
            Kind::FileUnusable,
            Kind::WritesOff,
        ];
        for kind in kinds {
            let name = serde_json::to_value(kind).unwrap();
            let name = name.as_str().unwrap();
            assert!(docs.contains(&format!("`{name}`")), "{name}");
        }
    }
}
