//! What krane makes of what happened to it, as the story and a visitor's page tell it.

use std::time::Duration;

use krane_domain::backlog::InTrouble;
use krane_domain::ids::{Controller, WorkKey};
use krane_sim::control_plane::Kind;

use super::stage::{Stage, VARIABLES};
use super::wish::{App, Wish, count};

/// What krane did, and how long that took; no time when it did not come to it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) event: &'static str,
    pub(super) what: String,
    pub(super) took: Option<Duration>,
}

impl Outcome {
    fn new(event: &'static str, what: impl Into<String>, took: Option<Duration>) -> Self {
        let what = what.into();
        Self { event, what, took }
    }
}

impl Stage {
    /// What somebody edited is as it is wanted again.
    pub(super) async fn undone(&self, wish: &Wish) -> Outcome {
        let took = self.until(|| self.is_in_place(wish)).await;
        let what = format!("undoes it, {} {}", wish.name(), wish.mended());
        Outcome::new("undone", what, took)
    }

    /// What a person holds is left as it is, and shown.
    pub(super) async fn kept_its_hands_off(&self, wish: &Wish) -> Outcome {
        let key = WorkKey::Workload(wish.key());
        let took = self.until(|| self.is_held(&key)).await;
        let what = format!(
            "leaves {} as it is, and shows what it would change",
            wish.name()
        );
        Outcome::new("holds", what, took)
    }

    /// A state that cannot be is out of everybody's way.
    pub(super) async fn set_aside(&self, wish: &Wish) -> Outcome {
        let took = self.until(|| self.aside(wish).is_some()).await;
        let field = self.aside(wish).and_then(|trouble| trouble.trouble.field);
        let fault = field.map_or_else(String::new, |field| format!(", its {field} is no {field}"));
        let what = format!(
            "sets that state aside{fault}; {} {}, nobody waits for it",
            wish.name(),
            wish.meanwhile()
        );
        Outcome::new("set_aside", what, took)
    }

    /// What krane has set aside of this.
    pub(super) fn aside(&self, wish: &Wish) -> Option<InTrouble> {
        let key = WorkKey::Workload(wish.key());
        let mut quarantine = self.in_quarantine().into_iter();
        quarantine.find(|trouble| trouble.key == key)
    }

    /// The control plane knows that a pod is missing.
    pub(super) async fn reported_missing(&self, app: &App) -> Outcome {
        let all = usize::try_from(app.replicas).unwrap_or(usize::MAX);
        let took = self.until(|| self.told(app).1 < all).await;
        let left = app.replicas.saturating_sub(1);
        let what = format!("reports {left} of {} running", app.replicas);
        Outcome::new("reports", what, took)
    }

    /// The control plane knows that it is back.
    pub(super) async fn reported_back(&self, app: &App) -> Outcome {
        let wish = Wish::App(app.clone());
        let took = self.until(|| self.is_told(&wish)).await;
        let what = format!("reports {} running, it is back", count(app.replicas));
        Outcome::new("reports", what, took)
    }

    /// An actor that was killed when there had been so many restarts runs again.
    pub(super) async fn restarted(&self, path: &str, before: u64) -> Outcome {
        let up = || {
            let status = self.agent().and_then(|agent| agent.board().get(path));
            status.is_some_and(|status| status.activity.is_up()) && self.restarts() > before
        };
        let took = self.until(up).await;
        // Servers and the heartbeat keep nothing.
        let is_of = |controller: Controller| path.starts_with(&format!("root/{controller}/"));
        let what = if Controller::ALL.into_iter().any(is_of) {
            "starts it again; it finds everything in the store above it, nothing is lost"
        } else {
            "starts it again"
        };
        Outcome::new("restarted", what, took)
    }

    /// The streams that were cut are open again.
    pub(super) async fn reopened(&self) -> Outcome {
        self.until(|| !self.is_connected()).await;
        let took = self.until(|| self.is_connected()).await;
        let cursors = [Kind::Deployments, Kind::Sentinels, Kind::Policies].map(|kind| {
            let cursors = self.control.look(|seen| seen.cursors(kind));
            cursors.iter().max().copied().unwrap_or(0)
        });
        let [apps, sentinels, policies] = cursors;
        let what = format!(
            "opens them again and goes on behind versions {apps}, {sentinels} and {policies}"
        );
        Outcome::new("reopened", what, took)
    }

    /// krane finds out that the control plane says nothing, if that lasts long enough.
    pub(super) async fn silence_noticed(&self) -> Option<Outcome> {
        let over = || !self.is_connected() || !self.is_disturbed();
        let took = self.until(over).await;
        let what = "notices that its stream is dead, and tries again and again; what runs runs on";
        let outcome = Outcome::new("noticed", what, took);
        (!self.is_connected()).then_some(outcome)
    }

    /// krane finds out that it does not see the cluster.
    pub(super) async fn blindness_noticed(&self) -> Outcome {
        let took = self.until(|| self.broken_watches() > 0).await;
        let what = "sees no change any more, backs off and keeps trying";
        Outcome::new("noticed", what, took)
    }

    /// A pod of the app has its own secrets.
    pub(super) async fn served(&self, app: &App) -> Outcome {
        let took = self.fetched(app).await;
        let what = format!(
            "gives it {}, for the API server confirms its token",
            VARIABLES.join(" and ")
        );
        Outcome::new("served", what, took)
    }

    /// A pod that asked for another app's secrets has none.
    pub(super) async fn theft_refused(&self, thief: &App, victim: &App) -> Outcome {
        let before = self.secrets.vault_calls();
        let took = self.refused(thief, victim).await;
        let mut what = format!("refuses it: that token is of a pod of {}", thief.name);
        // Another pod may have been served meanwhile.
        if self.secrets.vault_calls() == before {
            what += "; the vault was not even asked";
        }
        Outcome::new("refused", what, took)
    }

    /// All that a visitor had taken away is made good.
    pub(super) async fn all_well(&self) -> Outcome {
        let well = || self.is_connected() && self.broken_watches() == 0 && self.is_settled();
        let took = self.until(well).await;
        let what = "has everything in place and reported again";
        Outcome::new("well", what, took)
    }
}
