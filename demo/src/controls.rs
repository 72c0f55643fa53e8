//! The page's hands in the demo's world.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use krane_admin::actions::{Button, DemoAction, DemoControls, DemoError, Said};
use krane_domain::ids::Controller;
use krane_sim::control_plane::Code;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::narrator::{Narrator, Who};
use super::outcome::Outcome;
use super::stage::Stage;
use super::wish::{App, Wish};

/// What a visitor may do.
pub(super) struct Hands {
    stage: Arc<Stage>,
    narrator: Arc<Narrator>,
    /// Those who wait for what krane makes of it.
    waiting: Mutex<JoinSet<()>>,
    /// Edits so far: each is of another controller's objects.
    edits: AtomicUsize,
    /// Bad states so far, likewise.
    bad_states: AtomicUsize,
}

/// Something a visitor did.
struct Deed {
    event: &'static str,
    /// Behind "you", in the terminal.
    you: String,
    /// By itself, on the page.
    done: String,
    next: Next,
}

/// What is to come of it.
enum Next {
    Restart {
        path: String,
        before: u64,
    },
    Undoing(Wish),
    SettingAside(Wish),
    Holding(Wish),
    Reports(App),
    Refusal {
        thief: App,
        victim: App,
    },
    Reopening,
    Silence,
    /// krane knows already.
    Nothing,
    Blindness,
    Recovery,
}

impl Hands {
    pub(super) fn new(stage: Arc<Stage>, narrator: Arc<Narrator>) -> Self {
        Self {
            stage,
            narrator,
            waiting: Mutex::default(),
            edits: AtomicUsize::default(),
            bad_states: AtomicUsize::default(),
        }
    }

    /// Something that is well, of another controller than the last time if there is such.
    fn some(&self, turns: &AtomicUsize) -> Result<Wish, DemoError> {
        let turn = turns.load(Ordering::Relaxed);
        let kinds = [
            Controller::Deployments,
            Controller::Cilium,
            Controller::Sentinels,
        ];
        (0..kinds.len())
            .map(|later| kinds[(turn + later) % kinds.len()])
            .find_map(|kind| self.stage.well_of(kind).into_iter().next())
            .inspect(|_| turns.store(turn + 1, Ordering::Relaxed))
            .ok_or_else(|| self.nothing())
    }

    /// The apps that are well.
    fn apps(&self) -> impl Iterator<Item = App> {
        let wishes = self.stage.well().into_iter();
        wishes.filter_map(|wish| match wish {
            Wish::App(app) => Some(app),
            Wish::Sentinel(_) | Wish::Policy(_) => None,
        })
    }

    /// Some app that is well.
    fn app(&self) -> Result<App, DemoError> {
        self.apps().next().ok_or_else(|| self.nothing())
    }

    fn nothing(&self) -> DemoError {
        if self.stage.poisoned().is_empty() {
            DemoError::NothingThere
        } else {
            DemoError::AllBad
        }
    }

    fn kill(&self, path: String) -> Result<Deed, DemoError> {
        if path == "root" {
            return Err(DemoError::TheProcess);
        }
        let before = self.stage.restarts();
        let agent = self.stage.agent();
        if !agent.is_some_and(|agent| agent.board().kill(&path)) {
            return Err(DemoError::NoActor { path });
        }
        Ok(Deed {
            event: "killed",
            you: format!("kill krane's actor {path}"),
            done: format!("krane's actor {path} was killed"),
            next: Next::Restart { path, before },
        })
    }

    fn edit(&self) -> Result<Deed, DemoError> {
        let wish = self.some(&self.edits)?;
        if !self.stage.cluster.tamper(&wish) {
            return Err(DemoError::NothingThere);
        }
        let (name, how) = (wish.name(), wish.tampering());
        Ok(Deed {
            event: "edited",
            you: format!("edit {name} {how}"),
            done: format!("{name} was edited {how}"),
            next: Next::Undoing(wish),
        })
    }

    fn hold(&self) -> Result<Deed, DemoError> {
        let app = self.app()?;
        if !self.stage.cluster.hold(&app) {
            return Err(DemoError::NothingThere);
        }
        let wish = Wish::App(app);
        let name = wish.name();
        Ok(Deed {
            event: "held",
            you: format!("put {name} on hold and edit it {}", wish.tampering()),
            done: format!(
                "{name} was put on hold for an hour and edited: its page says who owns what"
            ),
            next: Next::Holding(wish),
        })
    }

    fn poison(&self) -> Result<Deed, DemoError> {
        let wish = self.some(&self.bad_states)?;
        self.stage.spoil(&wish);
        let name = wish.name();
        Ok(Deed {
            event: "poison",
            you: format!("make the control plane want nonsense of {name}"),
            done: format!("the control plane was made to want nonsense of {name}"),
            next: Next::SettingAside(wish),
        })
    }

    fn crash(&self) -> Result<Deed, DemoError> {
        let app = self.app()?;
        if !self.stage.cluster.crash(&app) {
            return Err(DemoError::NothingThere);
        }
        Ok(Deed {
            event: "crashed",
            you: format!("crash a pod of {}", app.name),
            done: format!("a pod of {} was crashed", app.name),
            next: Next::Reports(app),
        })
    }

    fn steal(&self) -> Result<Deed, DemoError> {
        let mut apps = self.apps();
        let (Some(thief), Some(victim)) = (apps.next(), apps.next()) else {
            return Err(self.nothing());
        };
        Ok(Deed {
            event: "stole",
            you: format!(
                "have a pod of {} ask for the secrets of {}",
                thief.name, victim.name
            ),
            done: format!(
                "a pod of {} asked for the secrets of {}",
                thief.name, victim.name
            ),
            next: Next::Refusal { thief, victim },
        })
    }

    fn cut(&self) -> Deed {
        self.stage.control.cut_streams(Code::Unavailable);
        Deed {
            event: "cut",
            you: "cut the desired-state streams".to_owned(),
            done: "the desired-state streams were cut".to_owned(),
            next: Next::Reopening,
        }
    }

    fn freeze(&self) -> Deed {
        let was_connected = self.stage.is_connected();
        self.stage.control.freeze();
        let (done, next) = if was_connected {
            let done = "the control plane was frozen; krane takes 10 to 20 s to notice";
            (done, Next::Silence)
        } else {
            let done = "the control plane was frozen; krane's stream was down already, it goes on \
                        trying";
            (done, Next::Nothing)
        };
        Deed {
            event: "frozen",
            you: "freeze the control plane".to_owned(),
            done: done.to_owned(),
            next,
        }
    }

    fn take_api_server_away(&self) -> Deed {
        self.stage.cluster.take_api_server_away();
        Deed {
            event: "away",
            you: "take the API server away".to_owned(),
            done: "the API server was taken away".to_owned(),
            next: Next::Blindness,
        }
    }

    fn restore(&self) -> Deed {
        self.stage.restore();
        Deed {
            event: "restored",
            you: "make everything well again".to_owned(),
            done: "everything that was taken away or made bad was given back".to_owned(),
            next: Next::Recovery,
        }
    }

    /// Tells what was done, in the terminal and on the page, and then what came of it.
    fn tell(&self, deed: Deed, is_first_outage: bool) -> Said {
        // Who cannot write ends the story, which writes more often.
        let _ = self.narrator.say(Who::You, deed.event, &deed.you, None);
        let (said, told) = watch::channel(deed.done);
        if is_first_outage {
            let what = "waits until Restore is pressed";
            let _ = self.narrator.say(Who::Story, "waits", what, None);
            said.send_modify(|said| *said += "; the story waits until Restore is pressed");
        }
        if matches!(deed.next, Next::Recovery) {
            let _ = self.narrator.say(Who::Story, "goes_on", "goes on", None);
        }
        if matches!(deed.next, Next::SettingAside(_) | Next::Holding(_)) {
            self.stage.show();
            let rests = "; the story rests for a minute, or until Restore is pressed";
            said.send_modify(|said| *said += rests);
        }
        let (stage, narrator) = (Arc::clone(&self.stage), Arc::clone(&self.narrator));
        let mut waiting = self.waiting.lock();
        while waiting.try_join_next().is_some() {}
        waiting.spawn(async move {
            let tell = |outcome: Outcome| {
                let Outcome { event, what, took } = outcome;
                let Some(took) = took else { return };
                let _ = narrator.say(Who::Krane, event, &what, Some(took));
                let time = super::narrator::readable(took);
                said.send_modify(|said| {
                    let _ = write!(said, "\nkrane {what} · {time}");
                });
            };
            match deed.next {
                Next::Restart { path, before } => tell(stage.restarted(&path, before).await),
                Next::Undoing(wish) => tell(stage.undone(&wish).await),
                Next::SettingAside(wish) => tell(stage.set_aside(&wish).await),
                Next::Holding(wish) => tell(stage.kept_its_hands_off(&wish).await),
                Next::Reports(app) => {
                    tell(stage.reported_missing(&app).await);
                    tell(stage.reported_back(&app).await);
                }
                Next::Refusal { thief, victim } => {
                    tell(stage.theft_refused(&thief, &victim).await);
                }
                Next::Reopening => tell(stage.reopened().await),
                Next::Silence => stage.silence_noticed().await.into_iter().for_each(tell),
                Next::Nothing => {}
                Next::Blindness => tell(stage.blindness_noticed().await),
                Next::Recovery => tell(stage.all_well().await),
            }
        });
        told
    }
}

#[async_trait]
impl DemoControls for Hands {
    fn buttons(&self) -> Vec<Button> {
        let button = |action, label, hint| Button {
            action,
            label,
            hint,
        };
        vec![
            button(
                DemoAction::EditObject,
                "Edit an object",
                "Somebody changes an app, a policy or a sentinel by hand; krane undoes it.",
            ),
            button(
                DemoAction::HoldObject,
                "Hold and edit",
                "Somebody asks krane to keep its hands off an app, and edits it; until Restore.",
            ),
            button(
                DemoAction::PoisonState,
                "Send a bad state",
                "A state that cannot be; krane sets it aside and nobody waits for it.",
            ),
            button(
                DemoAction::CrashPod,
                "Crash a pod",
                "krane reports what is left, and reports again when it is back.",
            ),
            button(
                DemoAction::StealSecrets,
                "Steal secrets",
                "A pod asks for those of another app; krane knows whose its token is.",
            ),
            button(
                DemoAction::CutStream,
                "Cut the streams",
                "krane opens them again after 1 to 5 s and goes on where it was.",
            ),
            button(
                DemoAction::FreezeControlPlane,
                "Freeze the control plane",
                "It holds its connections and says nothing, until Restore.",
            ),
            button(
                DemoAction::TakeApiServerAway,
                "Take the API server away",
                "Every request fails, until Restore; krane backs off and keeps trying.",
            ),
            button(
                DemoAction::Restore,
                "Restore",
                "Everything that was taken away or made bad is well again.",
            ),
        ]
    }

    fn story(&self) -> Vec<String> {
        self.narrator.story()
    }

    async fn act(&self, action: DemoAction) -> Result<Said, DemoError> {
        let is_outage = matches!(
            action,
            DemoAction::FreezeControlPlane | DemoAction::TakeApiServerAway
        );
        let is_first_outage = is_outage && self.stage.disturb();
        let deed = match action {
            DemoAction::KillActor { path } => self.kill(path)?,
            DemoAction::CutStream => self.cut(),
            DemoAction::FreezeControlPlane => self.freeze(),
            DemoAction::PoisonState => self.poison()?,
            DemoAction::EditObject => self.edit()?,
            DemoAction::HoldObject => self.hold()?,
            DemoAction::CrashPod => self.crash()?,
            DemoAction::StealSecrets => self.steal()?,
            DemoAction::TakeApiServerAway => self.take_api_server_away(),
            DemoAction::Restore => self.restore(),
        };
        Ok(self.tell(deed, is_first_outage))
    }
}
