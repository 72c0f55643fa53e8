//! What the preflight says: one line per thing looked at.

use serde::Serialize;

/// The error that says that a right is missing.
pub const MISSING_RIGHT: &str = "krane::check::rights";

/// What a finding is about, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The layers of the configuration and the files they name.
    Configuration,
    /// Names, connections, TLS, ports.
    Network,
    /// Whether it answers and takes the token.
    ControlPlane,
    /// Whether the API server answers.
    KubernetesApi,
    /// What krane may do in the cluster.
    Rights,
    /// What krane needs to be there, and what it is better to know of.
    Cluster,
    /// Where secrets are decrypted.
    Vault,
    /// The clocks.
    Time,
}

impl Group {
    /// The heading of a report for people.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Network => "network",
            Self::ControlPlane => "control plane",
            Self::KubernetesApi => "Kubernetes API",
            Self::Rights => "rights",
            Self::Cluster => "cluster",
            Self::Vault => "vault",
            Self::Time => "time",
        }
    }
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should.
    Pass,
    /// krane runs with it, but a person should know.
    Warn,
    /// krane does not run, or not well.
    Fail,
    /// Not looked at: something before it failed, or there is no right to look.
    Skip,
}

impl State {
    /// Its mark on a line.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Pass => "✔",
            Self::Warn => "‼",
            Self::Fail => "✗",
            Self::Skip => "-",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub group: Group,
    /// Its stable name within the report.
    pub check: &'static str,
    /// How it is.
    pub state: State,
    /// One sentence.
    pub message: String,
    /// Why, if it is not as it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The name of the error, as `docs/errors.md` lists it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Where it is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// Whether it was to be looked at and nobody knows how it is.
    #[serde(skip)]
    pub is_unknown: bool,
}

impl Finding {
    /// As it should.
    pub fn pass(group: Group, check: &'static str, message: impl Into<String>) -> Self {
        Self {
            group,
            check,
            state: State::Pass,
            message: message.into(),
            why: None,
            fix: None,
            code: None,
            docs: None,
            is_unknown: false,
        }
    }

    /// Not looked at, for this reason.
    pub fn skip(group: Group, check: &'static str, because: impl std::fmt::Display) -> Self {
        Self {
            state: State::Skip,
            ..Self::pass(group, check, format!("{check} not looked at: {because}"))
        }
    }

    /// Should have been looked at, and could not be; krane runs all the same.
    pub fn unseen(group: Group, check: &'static str, because: impl std::fmt::Display) -> Self {
        Self {
            is_unknown: true,
            ..Self::skip(group, check, because)
        }
    }

    /// krane needs it, and nobody knows whether it is there.
    pub fn unknown(group: Group, check: &'static str, message: impl Into<String>) -> Self {
        let failed = Self {
            is_unknown: true,
            ..Self::fail(group, check, "krane::check::unknown", message)
        };
        failed.fix("try again; if it stays so, look at what did not answer")
    }

    /// Wrong.
    pub fn fail(
        group: Group,
        check: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Fail,
            code: Some(code),
            docs: Some(docs(code)),
            ..Self::pass(group, check, message)
        }
    }

    /// Worth knowing.
    pub fn warn(
        group: Group,
        check: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warn,
            ..Self::fail(group, check, code, message)
        }
    }

    /// Whether it is wrong.
    pub fn is_failure(&self) -> bool {
        self.state == State::Fail
    }

    /// The same with its reason.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Where a code is explained: `krane::check::dns` is the anchor `check-dns`.
pub fn docs(code: &str) -> String {
    let anchor = code.trim_start_matches("krane::").replace("::", "-");
    format!("docs/errors.md#{anchor}")
}

/// Everything that was looked at.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    api_version: &'static str,
    kind: &'static str,
    /// How many there are of each state.
    pub summary: Summary,
    /// The findings, group by group.
    pub findings: Vec<Finding>,
}

/// Numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// As they should.
    pub passed: usize,
    /// Worth knowing.
    pub warnings: usize,
    /// Wrong.
    pub failed: usize,
    /// Not looked at.
    pub skipped: usize,
}

impl Report {
    /// Of these findings, in the order of their groups.
    pub fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.group);
        let count = |state| {
            let of_state = findings.iter().filter(|finding| finding.state == state);
            of_state.count()
        };
        let summary = Summary {
            passed: count(State::Pass),
            warnings: count(State::Warn),
            failed: count(State::Fail),
            skipped: count(State::Skip),
        };
        Self {
            api_version: "krane/v1",
            kind: "CheckReport",
            summary,
            findings,
        }
    }

    /// Whether all that is wrong is a missing right.
    pub fn lacks_only_rights(&self) -> bool {
        self.every_failure(|finding| finding.code == Some(MISSING_RIGHT))
    }

    /// Whether nothing is known to be wrong, and something that is needed could not be looked at.
    pub fn lacks_only_answers(&self) -> bool {
        self.every_failure(|finding| finding.is_unknown)
    }

    /// Whether something that should have been looked at was not.
    pub fn has_unseen(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_unknown)
    }

    /// There is a failure, and every one is such.
    fn every_failure(&self, is_such: impl Fn(&Finding) -> bool) -> bool {
        let failures = self.findings.iter().filter(|finding| finding.is_failure());
        let mut failures = failures.peekable();
        failures.peek().is_some() && failures.all(is_such)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(group: Group) -> Finding {
        Finding::fail(group, "x", "krane::check::rights", "x")
    }

    #[test]
    fn a_code_leads_to_its_explanation() {
        let finding = wrong(Group::Rights);
        assert_eq!(finding.docs.as_deref(), Some("docs/errors.md#check-rights"));
    }

    #[test]
    fn only_rights_are_missing_when_nothing_else_is_wrong() {
        let passed = || Finding::pass(Group::Time, "y", "y");
        assert!(Report::new(vec![passed(), wrong(Group::Rights)]).lacks_only_rights());
        assert!(!Report::new(vec![passed()]).lacks_only_rights());
        let absent = Finding::fail(Group::Cluster, "x", "krane::check::gvisor", "x");
        let both = vec![absent, wrong(Group::Rights)];
        assert!(!Report::new(both).lacks_only_rights());
    }

    #[test]
    fn what_nobody_knows_is_told_from_what_is_wrong() {
        let unknown = || Finding::unknown(Group::Rights, "rights", "no answer");
        let alone = Report::new(vec![unknown()]);
        assert!(alone.lacks_only_answers() && !alone.lacks_only_rights());
        let both = Report::new(vec![unknown(), wrong(Group::Rights)]);
        assert!(!both.lacks_only_answers() && !both.lacks_only_rights());
        let passed = Finding::pass(Group::Time, "y", "y");
        let unseen = Finding::unseen(Group::Cluster, "x", "503");
        assert!(Report::new(vec![passed.clone(), unseen]).has_unseen());
        let skipped = Finding::skip(Group::Cluster, "x", "403");
        assert!(!Report::new(vec![passed, skipped]).has_unseen());
    }

    #[test]
    fn the_report_is_in_the_order_of_groups() {
        let report = Report::new(vec![wrong(Group::Time), wrong(Group::Network)]);
        assert_eq!(report.findings[0].group, Group::Network);
        assert_eq!(report.summary.failed, 2);
    }
}
