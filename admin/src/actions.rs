//! What a page may do beyond looking. Only the demo offers it, for the world is its own.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Something to do to the demo's world, or to krane in it.
///
/// In JSON `{"action": "kill_actor", "path": "root/heartbeat"}`, the others without a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum DemoAction {
    /// Kills the actor at this path of the tree; its supervisor starts it again.
    KillActor {
        /// Its path, such as `root/heartbeat`.
        path: String,
    },
    /// The control plane ends its desired-state streams with an error.
    CutStream,
    /// The control plane holds all connections and answers nothing.
    FreezeControlPlane,
    /// The control plane wants something that cannot be.
    PoisonState,
    /// Somebody edits an object of krane's in the cluster.
    EditObject,
    /// Somebody puts an app on hold, and then edits it.
    HoldObject,
    /// A pod of one app crashes.
    CrashPod,
    /// A pod of one app asks for the secrets of another.
    StealSecrets,
    /// The Kubernetes API server refuses every request.
    TakeApiServerAway,
    /// Everything that was taken away, frozen or poisoned is well again.
    Restore,
}

/// A button: an action that needs no further word, with what stands on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Button {
    /// What it does.
    #[serde(flatten)]
    pub action: DemoAction,
    /// Two or three words.
    pub label: &'static str,
    /// What to expect, one sentence.
    pub hint: &'static str,
}

/// Why an action was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// No actor runs at this path.
    #[error("no actor runs at {path}")]
    NoActor {
        /// The path.
        path: String,
    },
    /// The topmost actor is all of krane.
    #[error("root is the process itself: press Ctrl-C in its terminal to end it")]
    TheProcess,
    /// There is no object to do it to.
    #[error("no app runs yet, try again in a second")]
    NothingThere,
    /// Every app was made bad already.
    #[error("every app has a bad state already, press Restore")]
    AllBad,
}

/// What was done, in a sentence; a line more for each thing that comes of it, until its sender is
/// dropped.
pub type Said = watch::Receiver<String>;

/// The demo's world, as a page sees it.
#[async_trait]
pub trait DemoControls: Send + Sync + 'static {
    /// The buttons to show, in order. Killing an actor is not among them: it belongs to the actor.
    fn buttons(&self) -> Vec<Button>;

    /// What goes on by itself, a sentence each, newest first; krane's own deeds are among its
    /// events.
    fn story(&self) -> Vec<String>;

    /// Does it, and says what was done and then what came of it.
    async fn act(&self, action: DemoAction) -> Result<Said, DemoError>;
}

/// The demo's controls, when there is a demo.
pub type Controls = Option<Arc<dyn DemoControls>>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_is_read_from_what_a_button_shows() {
        let button = Button {
            action: DemoAction::CutStream,
            label: "Cut the stream",
            hint: "krane reconnects",
        };
        let shown = serde_json::to_value(&button).unwrap();
        assert_eq!(shown["action"], "cut_stream");
        let action = json!({"action": shown["action"]});
        assert_eq!(
            serde_json::from_value::<DemoAction>(action).unwrap(),
            DemoAction::CutStream
        );
        let kill = json!({"action": "kill_actor", "path": "root/heartbeat"});
        assert_eq!(
            serde_json::from_value::<DemoAction>(kill).unwrap(),
            DemoAction::KillActor {
                path: "root/heartbeat".to_owned()
            }
        );
        assert!(serde_json::from_value::<DemoAction>(json!({"action": "kill_actor"})).is_err());
    }
}
