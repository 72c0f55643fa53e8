//! What every actor publishes about itself, and what krane publishes beside it.
//!
//! Page, metrics, watchdog and tests read these copies; nobody asks an actor.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use krane_domain::ids::{Controller, Moment};
use krane_ports::Traces;
use krane_supervision::news::{Fate, News};
use krane_supervision::status::Board;

use crate::events::{Events, Happening};
use crate::outage::ApiServer;

/// What an actor of krane knows about its own place in the tree.
pub type Context<M> = krane_supervision::actor::Context<M, StatusBoard>;

/// The published states of all actors, with what happened lately, what is known of the API server, and where traces go.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    actors: Board,
    events: Events,
    api_server: ApiServer,
    traces: Arc<OnceLock<Arc<dyn Traces>>>,
}

impl Default for StatusBoard {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for StatusBoard {
    type Target = Board;

    fn deref(&self) -> &Board {
        &self.actors
    }
}

impl AsRef<Board> for StatusBoard {
    fn as_ref(&self) -> &Board {
        &self.actors
    }
}

impl StatusBoard {
    /// An empty board whose moments count from now.
    pub fn new() -> Self {
        let events = Events::default();
        let told = events.clone();
        Self {
            actors: Board::telling(move |news| {
                let (at, controller) = (news.at, controller_of(news.group));
                told.record(at, controller, happening(news));
            }),
            events,
            api_server: ApiServer::default(),
            traces: Arc::default(),
        }
    }

    /// The published states alone.
    pub fn actors(&self) -> &Board {
        &self.actors
    }

    /// From now on traces of states go there.
    pub fn trace_to(&self, traces: Arc<dyn Traces>) {
        self.traces.get_or_init(|| traces);
    }

    /// Where traces of states go, if they are on.
    pub fn traces(&self) -> Option<&dyn Traces> {
        self.traces.get().map(AsRef::as_ref)
    }

    /// What happened lately in the tree.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// What is known of the API server's answers.
    pub(crate) fn api_server(&self) -> &ApiServer {
        &self.api_server
    }

    /// When the last outage of the API server was over, if there was one.
    pub fn api_server_back_at(&self) -> Option<Moment> {
        self.api_server.back_at()
    }

    /// Remembers that something happened just now.
    pub fn record(&self, controller: Option<Controller>, what: Happening) {
        self.events.record(self.now(), controller, what);
    }
}

/// The controller whose actors are this group of the tree.
pub fn controller_of(group: Option<&'static str>) -> Option<Controller> {
    let group = group?;
    Controller::ALL.into_iter().find(|it| it.name() == group)
}

fn happening(news: News) -> Happening {
    let path = news.path;
    match news.fate {
        Fate::Restarted => Happening::ActorRestarted { path },
        Fate::Failed {
            kind,
            text,
            pause,
            is_parked,
        } => Happening::ActorFailed {
            path,
            kind,
            text,
            pause,
            is_parked,
        },
    }
}
