//! The acts, played: something happens, and the line after it says what krane made of it.

mod sentinels;

use std::time::Duration;

use krane::run::Running;
use krane_sim::control_plane::Kind;
use tokio::time::Instant;

use super::CrowdOptions;
use super::DemoError;
use super::narrator::{Narrator, Who};
use super::outcome::Outcome;
use super::script::Act;
use super::stage::{Stage, pause};
use super::wish::{App, Wish, count};

/// How long the control plane and the API server stay away.
const AWAY: Duration = Duration::from_millis(1_500);

impl Act {
    /// About how long it takes to play.
    pub(super) const fn length(&self) -> Duration {
        match self {
            // The stream comes back 1 to 5 s after it was lost.
            Self::ControlPlaneAway { .. } => Duration::from_secs(8),
            Self::ApiServerAway(_) => Duration::from_secs(4),
            Self::Appear(_)
            | Self::Guard { .. }
            | Self::Release(_)
            | Self::Scale(_)
            | Self::Roll(_)
            | Self::Resize(_)
            | Self::Remove(_)
            | Self::Poison(_)
            | Self::Mend(_)
            | Self::Edit(_)
            | Self::Crash(_)
            | Self::Fetch(_)
            | Self::Steal { .. }
            | Self::Kill(_) => Duration::from_secs(2),
        }
    }
}

/// An act was played, and its lines were written.
type Told = Result<(), DemoError>;

/// Who plays, and who tells.
pub(super) struct Play<'a> {
    pub(super) stage: &'a Stage,
    pub(super) narrator: &'a Narrator,
}

impl Play<'_> {
    /// Plays one act to its end.
    pub(super) async fn act(&self, act: &Act) -> Told {
        match act {
            Act::Appear(apps) => self.appear(apps).await,
            Act::Guard { sentinels, apps } => self.guard(sentinels, apps).await,
            Act::Release(app) => self.release(app).await,
            Act::Scale(app) => self.scale(app).await,
            Act::Roll(sentinel) => self.roll(sentinel).await,
            Act::Resize(sentinel) => self.resize(sentinel).await,
            Act::Remove(app) => self.remove(app).await,
            Act::Poison(wish) => self.poison(wish).await,
            Act::Mend(wish) => self.mend(wish).await,
            Act::Edit(wish) => self.edit(wish).await,
            Act::Crash(app) => self.crash(app).await,
            Act::Fetch(app) => self.fetch(app).await,
            Act::Steal { thief, victim } => self.steal(thief, victim).await,
            Act::ControlPlaneAway { edited, changed } => {
                self.without_control_plane(edited, changed).await
            }
            Act::ApiServerAway(app) => self.without_api_server(app).await,
            Act::Kill(path) => self.kill(path).await,
        }
    }

    /// The crowd comes, if there is one. The story begins when it is there.
    pub(super) async fn crowd_appears(&self) -> Told {
        let crowd = &self.stage.crowd;
        let CrowdOptions {
            apps,
            changes_per_second,
        } = crowd.options();
        if apps == 0 {
            return Ok(());
        }
        self.stage.want_crowd();
        let restless = match changes_per_second {
            0 => String::new(),
            rate => format!("; {rate} of them change in a second from then on"),
        };
        let namespaces = crowd.namespaces();
        let what = format!("wants a crowd of {apps} apps in {namespaces} namespaces{restless}");
        self.say(Who::ControlPlane, "wants", &what)?;
        let took = self.stage.crowd_settled().await;
        let what = format!("made and reported all {apps}");
        self.done("made", &what, took)
    }

    /// Leaves the visitor some time in which nothing is missing.
    pub(super) async fn rest(&self) -> Told {
        let what = "rests for 15 s after Restore before it takes something away";
        self.say(Who::Story, "rests", what)?;
        self.stage.rested().await;
        Ok(())
    }

    /// Leaves the visitor some time in which nothing else happens.
    pub(super) async fn leave_alone(&self) -> Told {
        let what = "rests for a minute, or until Restore is pressed: look at what you did";
        self.say(Who::Story, "rests", what)?;
        self.stage.looked_at().await;
        Ok(())
    }

    fn say(&self, who: Who, event: &str, what: &str) -> Told {
        let told = self.narrator.say(who, event, what, None);
        told.map_err(DemoError::Output)
    }

    fn done(&self, event: &str, what: &str, took: Option<Duration>) -> Told {
        if took.is_some() {
            let told = self.narrator.say(Who::Krane, event, what, took);
            return told.map_err(DemoError::Output);
        }
        let what = "cannot get there yet, it goes on trying; so does the story";
        self.say(Who::Krane, "late", what)
    }

    fn tell(&self, outcome: &Outcome) -> Told {
        self.done(outcome.event, &outcome.what, outcome.took)
    }

    async fn appear(&self, apps: &[App]) -> Told {
        let names: Vec<_> = apps
            .iter()
            .map(|app| format!("{}/{} ×{}", app.namespace, app.name, app.replicas))
            .collect();
        let noun = if apps.len() == 1 {
            "a new app"
        } else {
            "new apps"
        };
        self.stage.want(apps);
        self.say(
            Who::ControlPlane,
            "wants",
            &format!("wants {noun}: {}", names.join(", ")),
        )?;
        let took = self.in_place(apps).await;
        self.done(
            "made",
            &match apps.len() {
                1 => "made it, with its namespace and isolation policy in place first".to_owned(),
                many => format!("made all {many}, each after its namespace and isolation policy"),
            },
            took,
        )?;
        let took = self.told(apps).await;
        let instances: u32 = apps.iter().map(|app| app.replicas).sum();
        self.done(
            "reports",
            &format!("reports {} running", count(instances)),
            took,
        )
    }

    async fn release(&self, app: &App) -> Told {
        self.stage.want(std::slice::from_ref(app));
        let wish = format!("wants {} at release {}", app.name, app.tag());
        self.say(Who::ControlPlane, "wants", &wish)?;
        let took = self.in_place(std::slice::from_ref(app)).await;
        self.done(
            "changed",
            &format!(
                "changed {}; pods that run stay: replace_outdated_pods is never",
                app.name
            ),
            took,
        )
    }

    async fn scale(&self, app: &App) -> Told {
        self.stage.want(std::slice::from_ref(app));
        let wish = format!("wants {} of {}", count(app.replicas), app.name);
        self.say(Who::ControlPlane, "wants", &wish)?;
        let took = self.in_place(std::slice::from_ref(app)).await;
        self.done("changed", &format!("scaled {}", app.name), took)?;
        let took = self.told(std::slice::from_ref(app)).await;
        self.done(
            "reports",
            &format!("reports {} running", count(app.replicas)),
            took,
        )
    }

    async fn remove(&self, app: &App) -> Told {
        let mut gone: Vec<Wish> = vec![app.clone().into()];
        gone.extend(app.policies().map(Wish::from));
        for wish in &gone {
            self.stage.remove(wish);
        }
        let wish = format!("wants {} gone, and its policies", app.name);
        self.say(Who::ControlPlane, "wants", &wish)?;
        let is_gone = || {
            gone.iter()
                .all(|wish| self.stage.cluster.live(wish).is_none())
        };
        let took = self.stage.until(is_gone).await;
        self.done(
            "removed",
            &format!("deleted {} and both policies", app.name),
            took,
        )?;
        let took = self.stage.until(|| self.stage.is_told_gone(app)).await;
        self.done("reports", "reports it gone", took)
    }

    async fn poison(&self, wish: &Wish) -> Told {
        self.stage.poison(wish);
        let what = format!("wants nonsense: {} {}", wish.name(), wish.nonsense());
        self.say(Who::ControlPlane, "poison", &what)?;
        let outcome = self.stage.set_aside(wish).await;
        self.tell(&outcome)
    }

    async fn mend(&self, wish: &Wish) -> Told {
        self.stage.want(std::slice::from_ref(wish));
        let what = format!("wants something sensible of {} again", wish.name());
        self.say(Who::ControlPlane, "wants", &what)?;
        let took = self.stage.until(|| self.stage.aside(wish).is_none()).await;
        self.done(
            "mended",
            "drops the bad state, the newer one replaced it",
            took,
        )
    }

    async fn edit(&self, wish: &Wish) -> Told {
        if !self.stage.cluster.tamper(wish) {
            return Ok(());
        }
        let what = format!("edits {} {}", wish.name(), wish.tampering());
        self.say(Who::Someone, "edited", &what)?;
        let outcome = self.stage.undone(wish).await;
        self.tell(&outcome)
    }

    async fn crash(&self, app: &App) -> Told {
        if !self.stage.cluster.crash(app) {
            return Ok(());
        }
        let what = format!("a pod of {} crashes", app.name);
        self.say(Who::Cluster, "crashed", &what)?;
        let missing = self.stage.reported_missing(app).await;
        self.tell(&missing)?;
        let back = self.stage.reported_back(app).await;
        self.tell(&back)
    }

    async fn fetch(&self, app: &App) -> Told {
        let what = format!("a pod of {} asks krane for its secrets", app.name);
        self.say(Who::Cluster, "asked", &what)?;
        let outcome = self.stage.served(app).await;
        self.tell(&outcome)
    }

    async fn steal(&self, thief: &App, victim: &App) -> Told {
        let what = format!(
            "a pod of {} asks for the secrets of {}",
            thief.name, victim.name
        );
        self.say(Who::Cluster, "stole", &what)?;
        let outcome = self.stage.theft_refused(thief, victim).await;
        self.tell(&outcome)
    }

    async fn without_control_plane(&self, edited: &App, changed: &App) -> Told {
        self.stage.control.stop().await;
        self.say(Who::ControlPlane, "away", "is gone")?;
        let start = Instant::now();
        let lost = || !self.stage.is_connected();
        self.stage.until(lost).await;
        // One that is not there has no image to lose.
        let _ = self.stage.cluster.tamper(&edited.clone().into());
        let what = format!(
            "edits {} by hand, while nobody is there to ask",
            edited.name
        );
        self.say(Who::Someone, "edited", &what)?;
        let took = self.in_place(std::slice::from_ref(edited)).await;
        self.done(
            "undone",
            "undoes it all the same: it knows what was wanted",
            took,
        )?;
        pause(AWAY.saturating_sub(start.elapsed())).await;
        self.stage.undisturbed().await;
        let started = self.stage.control.start_again().await;
        started.map_err(DemoError::ControlPlane)?;
        self.stage.want(std::slice::from_ref(changed));
        let wish = format!(
            "is back, and wants {} of {}",
            count(changed.replicas),
            changed.name
        );
        self.say(Who::ControlPlane, "back", &wish)?;
        let took = self.in_place(std::slice::from_ref(changed)).await;
        let cursors = self
            .stage
            .control
            .look(|seen| seen.cursors(Kind::Deployments));
        let what = format!(
            "went on behind version {} and scaled {}",
            cursors.iter().max().copied().unwrap_or(0),
            changed.name
        );
        self.done("changed", &what, took)?;
        let took = self.told(std::slice::from_ref(changed)).await;
        self.done(
            "reports",
            &format!("reports {} running", count(changed.replicas)),
            took,
        )
    }

    async fn without_api_server(&self, app: &App) -> Told {
        self.stage.cluster.take_api_server_away();
        self.say(Who::Cluster, "away", "the API server answers nobody")?;
        self.stage.want(std::slice::from_ref(app));
        let wish = format!("wants {} at release {}", app.name, app.tag());
        self.say(Who::ControlPlane, "wants", &wish)?;
        pause(AWAY).await;
        self.stage.undisturbed().await;
        self.stage.cluster.give_api_server_back();
        self.say(Who::Cluster, "back", "the API server is back")?;
        let took = self.in_place(std::slice::from_ref(app)).await;
        self.done(
            "changed",
            &format!("changed {}, it had kept trying", app.name),
            took,
        )
    }

    async fn kill(&self, path: &str) -> Told {
        let before = self.stage.restarts();
        let Some(board) = self.stage.agent().map(Running::board) else {
            return Ok(());
        };
        if !board.kill(path) {
            return Ok(());
        }
        let name = path.trim_start_matches("root/");
        self.say(Who::Chaos, "killed", &format!("kills krane's actor {name}"))?;
        let outcome = self.stage.restarted(path, before).await;
        self.tell(&outcome)
    }

    async fn in_place<W: Clone + Into<Wish>>(&self, wishes: &[W]) -> Option<Duration> {
        let wishes: Vec<Wish> = wishes.iter().cloned().map(Into::into).collect();
        let all = || wishes.iter().all(|wish| self.stage.is_in_place(wish));
        self.stage.until(all).await
    }

    async fn told(&self, apps: &[App]) -> Option<Duration> {
        let wishes: Vec<Wish> = apps.iter().cloned().map(Into::into).collect();
        let all = || wishes.iter().all(|wish| self.stage.is_told(wish));
        self.stage.until(all).await
    }
}
