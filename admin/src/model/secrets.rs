//! Whether pods that ask for secrets are compared with the desired states, in words.

use krane_actors::secrets::SecretsStatus;
use krane_domain::ids::Moment;
use serde::Serialize;

/// How pods that ask for secrets are proved (D50).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretsView {
    /// Why this process cannot compare pods with the desired states now, if it cannot.
    pub unproved_because: Option<String>,
    /// Pods that were given secrets without that proof since the process started.
    pub unproved: u64,
    /// The same by reason, those that happened.
    pub reasons: Vec<UnprovedView>,
}

/// How often secrets were given without proof, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnprovedView {
    /// The label of the metric.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
}

impl SecretsView {
    /// As it is now.
    #[must_use]
    pub fn of(status: &SecretsStatus, now: Moment) -> Self {
        let counted = status.unproved().filter(|(_, count)| *count > 0);
        let reasons: Vec<UnprovedView> = counted
            .map(|(why, count)| UnprovedView {
                reason: why.name(),
                count,
            })
            .collect();
        Self {
            unproved_because: status.cannot_judge(now).map(|why| why.to_string()),
            unproved: reasons.iter().map(|it| it.count).sum(),
            reasons,
        }
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let now = match &self.unproved_because {
            None => "pods that ask for secrets are compared with the desired state".to_owned(),
            Some(why) => {
                format!("pods that ask for secrets are not compared with the desired state: {why}")
            }
        };
        match self.unproved {
            0 => now,
            count => format!("{now} · {count} given secrets without that proof so far"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_why_pods_are_not_proved_and_how_often_that_was() {
        let mut view = SecretsView {
            unproved_because: None,
            unproved: 0,
            reasons: Vec::new(),
        };
        let proved = "pods that ask for secrets are compared with the desired state";
        assert_eq!(view.sentence(), proved);
        view.unproved_because = Some("it is a standby".to_owned());
        view.unproved = 2;
        assert_eq!(
            view.sentence(),
            "pods that ask for secrets are not compared with the desired state: it is a standby \
             · 2 given secrets without that proof so far"
        );
    }
}
