//! How a demo ended.

use serde::Serialize;

/// What came of the requests of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Requests {
    /// A pod got its own secrets.
    pub(crate) served: u64,
    /// A pod asked for those of another app and got nothing.
    pub(crate) refused: u64,
    /// It got them: a defect of krane.
    pub(crate) leaked: u64,
}

/// What became of one kind of things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Score {
    /// So many are wanted and can be.
    pub(super) wanted: usize,
    /// Of these, how many are in the cluster as they are wanted.
    pub(super) in_place: usize,
    /// Of these, how many the control plane was told of as they are.
    pub(super) reported: usize,
}

impl Score {
    fn words(self, noun: &str, plural: &str) -> String {
        let Self {
            wanted, in_place, ..
        } = self;
        let noun = if wanted == 1 { noun } else { plural };
        format!("{in_place} of {wanted} {noun}")
    }
}

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
    /// The apps.
    pub(super) apps: Score,
    /// The sentinels before them.
    pub(super) sentinels: Score,
    /// The policies between them, of which nothing is to be reported.
    pub(super) policies: Score,
    /// What came of pods that asked for secrets.
    pub(super) secrets: Requests,
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
            apps,
            sentinels,
            policies,
            secrets,
            reports_delivered,
            restarts,
            ..
        } = self;
        let aside = match self.poisoned + self.quarantined {
            0 => String::new(),
            count => format!(" · {count} set aside"),
        };
        let some = |count: u64, words: String| match count {
            0 => String::new(),
            _ => format!(" · {words}"),
        };
        let served = some(
            secrets.served,
            format!("secrets for {}", many(secrets.served, "pod")),
        );
        let thieves = some(
            secrets.refused,
            match secrets.refused {
                1 => "1 thief refused".to_owned(),
                count => format!("{count} thieves refused"),
            },
        );
        format!(
            "{}, {} and {} in place and reported · {} in {} · {} · {}{served}{thieves}{aside}",
            apps.words("app", "apps"),
            sentinels.words("sentinel", "sentinels"),
            policies.words("policy", "policies"),
            many(states_sent, "state"),
            many(acts, "act"),
            many(reports_delivered, "report"),
            many(restarts, "actor restart"),
        )
    }
}

/// A number and its noun.
fn many(count: impl std::fmt::Display, noun: &str) -> String {
    match count.to_string().as_str() {
        "1" => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Requests, Score, Summary};

    #[test]
    fn one_is_no_plural() {
        let one = Score {
            wanted: 1,
            in_place: 1,
            reported: 1,
        };
        let summary = Summary {
            seed: 1,
            elapsed_ms: 0,
            acts: 1,
            states_sent: 1,
            states_applied: 1,
            apps: one,
            sentinels: one,
            policies: Score {
                wanted: 2,
                in_place: 1,
                reported: 2,
            },
            secrets: Requests::default(),
            reports_delivered: 2,
            quarantined: 0,
            poisoned: 0,
            restarts: 1,
            ok: true,
            open: Vec::new(),
        };
        assert_eq!(
            summary.sentence(),
            "1 of 1 app, 1 of 1 sentinel and 1 of 2 policies in place and reported · 1 state in 1 act · \
             2 reports · 1 actor restart"
        );
    }
}
