//! Why an actor went down, and what that means for starting it again.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, SpawnErr};

/// Why a worker gives up; its supervisor restarts it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ActorError(pub String);

/// Why an actor went down, or did not come up.
///
/// Never holds the text of a panic: that may quote input. Texts here are the code's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// It panicked, at this place if the panic hook noted one.
    #[error("panicked{}", place.as_deref().map(|place| format!(" at {place}")).unwrap_or_default())]
    Panicked {
        /// File, line and column.
        place: Option<Arc<str>>,
    },
    /// It gave up with an error.
    #[error("{0}")]
    Failed(Arc<str>),
    /// It was killed, or its task was cancelled.
    #[error("killed")]
    Killed,
    /// The watchdog killed it.
    #[error("{0}")]
    Hung(Arc<str>),
    /// It ended although it was meant to stay.
    #[error("ended by itself")]
    Ended,
    /// Its start failed.
    #[error("did not start: {0}")]
    NotStarted(Arc<str>),
    /// Its start took too long.
    #[error("did not start within {0:?}")]
    StartTimeout(Duration),
    /// What it needs from outside before its start is not there. Costs no restart budget.
    #[error("not prepared: {0}")]
    Unprepared(Arc<str>),
    /// A supervisor whose children spent its restart budget.
    #[error("restart budget spent, last by {path}: {last}")]
    Exhausted {
        /// The child that failed once too often.
        path: Arc<str>,
        /// How.
        last: Arc<str>,
    },
    /// An actor that does not die when killed: nothing can be started in its place.
    #[error("{0} was killed and does not die")]
    Undead(Arc<str>),
}

impl Cause {
    /// A word for status and metrics: a closed set.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Panicked { .. } => "panic",
            Self::Failed(_) => "error",
            Self::Killed => "killed",
            Self::Hung(_) => "hung",
            Self::Ended => "ended",
            Self::NotStarted(_) => "start",
            Self::StartTimeout(_) => "timeout",
            Self::Unprepared(_) => "preparation",
            Self::Exhausted { .. } => "exhausted",
            Self::Undead(_) => "undead",
        }
    }

    /// A panic just caught on this thread.
    pub fn caught_panic() -> Self {
        Self::Panicked {
            place: PLACE.with_borrow_mut(Option::take),
        }
    }

    /// What a dead actor's error says. An unknown type is a panic that ractor caught.
    pub(crate) fn of_error(error: &ActorProcessingErr) -> Self {
        if let Some(cause) = error.downcast_ref::<Self>() {
            return cause.clone();
        }
        match error.downcast_ref::<ActorError>() {
            Some(ActorError(words)) => Self::Failed(words.as_str().into()),
            None => Self::Panicked { place: None },
        }
    }
}

impl From<ActorError> for Cause {
    fn from(ActorError(words): ActorError) -> Self {
        Self::NotStarted(words.into())
    }
}

impl From<SpawnErr> for Cause {
    fn from(error: SpawnErr) -> Self {
        let words = match &error {
            SpawnErr::StartupFailed(inner) => match Self::of_error(inner) {
                Self::Failed(words) => return Self::NotStarted(words),
                cause @ Self::Panicked { .. } => cause.to_string(),
                cause @ (Self::Killed
                | Self::Hung(_)
                | Self::Ended
                | Self::NotStarted(_)
                | Self::StartTimeout(_)
                | Self::Unprepared(_)
                | Self::Exhausted { .. }
                | Self::Undead(_)) => return cause,
            },
            SpawnErr::ActorAlreadyStarted => "started twice".to_owned(),
            SpawnErr::ActorAlreadyRegistered(_) => "its name is taken".to_owned(),
        };
        Self::NotStarted(words.into())
    }
}

thread_local! {
    static PLACE: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// To be called by the process's panic hook: remembers where this thread panics, for the status
/// of the actor that does.
pub fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map(|location| Arc::from(location.to_string()));
    PLACE.with_borrow_mut(|slot| *slot = place);
}
