//! The page's hands in the demo's world.

use std::sync::Arc;

use async_trait::async_trait;
use krane_sim::control_plane::Code;

use super::narrator::{Narrator, Who};
use super::script::App;
use super::stage::Stage;
use crate::admin::actions::{Button, DemoAction, DemoControls, DemoError};

/// What a visitor may do.
pub(super) struct Hands {
    pub(super) stage: Arc<Stage>,
    pub(super) narrator: Arc<Narrator>,
}

impl Hands {
    /// Some app that is well.
    fn app(&self) -> Result<App, DemoError> {
        let apps = self.stage.well();
        apps.into_iter().next().ok_or(DemoError::NothingThere)
    }

    fn kill(&self, path: String) -> Result<String, DemoError> {
        let agent = self.stage.agent();
        if agent.is_some_and(|agent| agent.board().kill(&path)) {
            Ok(format!("kill krane's actor {path}"))
        } else {
            Err(DemoError::NoActor { path })
        }
    }

    /// Whatever was taken away is there again, and what was nonsense makes sense.
    fn restore(&self) -> String {
        self.stage.control.thaw();
        self.stage.control.heal();
        self.stage.cluster.give_api_server_back();
        self.stage.want(&self.stage.poisoned());
        "make everything well again".to_owned()
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
                "Somebody changes an image by hand; krane undoes it.",
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
                DemoAction::CutStream,
                "Cut the stream",
                "krane opens it again after 1 to 5 s and goes on where it was.",
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

    async fn act(&self, action: DemoAction) -> Result<String, DemoError> {
        let (event, what) = match action {
            DemoAction::KillActor { path } => ("killed", self.kill(path)?),
            DemoAction::CutStream => {
                self.stage.control.cut_streams(Code::Unavailable);
                ("cut", "cut the desired-state stream".to_owned())
            }
            DemoAction::FreezeControlPlane => {
                self.stage.control.freeze();
                ("frozen", "freeze the control plane".to_owned())
            }
            DemoAction::PoisonState => {
                let app = self.app()?;
                self.stage.poison(&app);
                (
                    "poison",
                    format!("make the control plane want nonsense of {}", app.name),
                )
            }
            DemoAction::EditObject => {
                let app = self.app()?;
                if !self.stage.cluster.edit(&app) {
                    return Err(DemoError::NothingThere);
                }
                (
                    "edited",
                    format!("edit {} by hand: another image", app.name),
                )
            }
            DemoAction::CrashPod => {
                let app = self.app()?;
                if !self.stage.cluster.crash(&app) {
                    return Err(DemoError::NothingThere);
                }
                ("crashed", format!("crash a pod of {}", app.name))
            }
            DemoAction::TakeApiServerAway => {
                self.stage.cluster.take_api_server_away();
                ("away", "take the API server away".to_owned())
            }
            DemoAction::Restore => ("restored", self.restore()),
        };
        // Who cannot write ends the story, which writes more often.
        let _ = self.narrator.say(Who::You, event, &what, None);
        Ok(what)
    }
}
