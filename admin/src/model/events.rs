//! What happened lately, in words.

use std::time::Duration;

use krane_actors::events::{Event, Happening};
use krane_domain::ids::Controller;
use krane_domain::words::many;
use serde::Serialize;

use super::controllers::trouble_level;
use super::{Epoch, Filter, Level, Sources, Stamp};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventView {
    /// Counts up by one.
    pub number: u64,
    /// When.
    pub at: Stamp,
    /// What, one of a closed set.
    pub kind: &'static str,
    /// How bad that is.
    pub level: Level,
    /// The controller.
    pub controller: Option<&'static str>,
    /// The object it is about.
    pub object: Option<String>,
    /// The actor it is about.
    pub actor: Option<String>,
    /// The version it is about.
    pub version: Option<u64>,
    /// Where an object differed; paths without values.
    pub paths: Vec<String>,
    /// The field managers that had changed it.
    pub by: Vec<String>,
    /// One sentence.
    pub text: String,
}

impl EventView {
    /// Whether a person who typed this means it: by its object, actor, controller, kind or text.
    #[must_use]
    pub fn matches(&self, filter: &Filter) -> bool {
        let object = self.object.as_deref().unwrap_or_default();
        let actor = self.actor.as_deref().unwrap_or_default();
        let controller = self.controller.unwrap_or_default();
        let (kind, text) = (self.kind, &self.text);
        filter.is_in(&format!("{object} {actor} {controller} {kind} {text}"))
    }
}

pub(super) fn view(sources: &Sources) -> Vec<EventView> {
    let events = sources.board.events().newest_first();
    events
        .iter()
        .map(|event| of(event, &sources.epoch))
        .collect()
}

fn of(event: &Event, epoch: &Epoch) -> EventView {
    let mut view = EventView {
        number: event.number,
        at: epoch.at(event.at),
        kind: event.what.name(),
        level: Level::Good,
        controller: event.controller.map(Controller::name),
        object: None,
        actor: None,
        version: None,
        paths: Vec::new(),
        by: Vec::new(),
        text: String::new(),
    };
    tell(&event.what, &mut view);
    view
}

fn tell(what: &Happening, view: &mut EventView) {
    match what {
        Happening::Applied { key, version, took } => {
            view.object = Some(key.to_string());
            view.version = known(*version);
            view.text = format!("applied in {}", brief(*took));
        }
        Happening::Deleted { key, version } => {
            view.object = Some(key.to_string());
            view.version = known(*version);
            view.text += "deleted";
        }
        Happening::Repaired {
            object,
            paths,
            more,
            by,
        } => {
            view.object = Some(object.to_string());
            view.level = Level::Warn;
            view.paths.clone_from(paths);
            view.by.clone_from(by);
            let who = if by.is_empty() {
                "somebody".to_owned()
            } else {
                by.join(" and ")
            };
            view.text = match (paths.len(), more) {
                (0, _) => "somebody deleted it; made again".to_owned(),
                (_, 0) => format!("{who} changed {}; put right", paths.join(", ")),
                (_, more) => {
                    let paths = paths.join(", ");
                    format!("{who} changed {paths} and {more} more; put right")
                }
            };
        }
        Happening::Troubled {
            key,
            version,
            trouble,
        } => {
            view.object = Some(key.to_string());
            view.version = known(*version);
            view.level = trouble_level(trouble.kind);
            view.text = format!("{}: {trouble}", trouble.kind.name());
        }
        Happening::Recovered { key, attempts } => {
            view.object = Some(key.to_string());
            view.text = format!(
                "in place again after {}",
                many(
                    usize::try_from(*attempts).unwrap_or(usize::MAX),
                    "failed attempt"
                )
            );
        }
        Happening::StreamOpened { cursor } => {
            view.text = format!("stream open, goes on after version {cursor}");
        }
        Happening::StreamEnded { code, message } => {
            view.level = Level::Warn;
            view.text = format!("stream ended ({code}): {message}");
        }
        Happening::Reported { key, gist } => {
            view.object = Some(key.to_string());
            view.text = format!("reported {gist}");
        }
        Happening::PodsCannotStart { key, error } => {
            view.object = Some(key.to_string());
            view.level = Level::Warn;
            view.text = format!("its pods cannot start: {error}");
        }
        Happening::ReportFailed { key, failure } => {
            view.object = Some(key.to_string());
            view.level = Level::Warn;
            view.text = format!("reports do not get through: {failure}; they are retried");
        }
        Happening::ReportsRecovered => view.text += "reports get through again",
        Happening::BreakerOpened => {
            view.level = Level::Warn;
            view.text += "control plane unreachable: calls pause until a probe succeeds";
        }
        Happening::ApiServerLost { error, silent } => {
            view.level = Level::Bad;
            let silent = brief(*silent);
            view.text = format!("the Kubernetes API has not answered for {silent}: {error}");
        }
        Happening::ApiServerRecovered { took } => {
            let took = brief(*took);
            view.text = format!("the Kubernetes API answers again, after {took}");
        }
        Happening::ResyncChanged { key } => {
            view.object = Some(key.to_string());
            view.level = Level::Warn;
            view.text += "the stream had missed what is wanted; resync found it";
        }
        Happening::Disowned { key } => {
            view.object = Some(key.to_string());
            view.level = Level::Warn;
            view.text += "the control plane does not know it (asked twice): deleted";
        }
        Happening::DeletesHeld { found } => {
            view.level = Level::Bad;
            view.text = format!(
                "the control plane does not know {} any more; too many at once, so none is deleted",
                many(*found, "object")
            );
        }
        Happening::DeletesAllowed { objects } => {
            view.text = format!("a person allowed {}", many(*objects, "held deletion"));
        }
        Happening::Asked { action, key } => {
            view.object = key.as_ref().map(ToString::to_string);
            view.text = format!("a person asked: {action}");
        }
        Happening::LeaseWon => view.text += "holds the lease: this process writes from now on",
        Happening::LeaseLost { holder } => {
            view.level = Level::Warn;
            view.text = match holder {
                Some(holder) => format!("{holder} holds the lease: this process stands by"),
                None => "does not hold the lease any more: this process stands by".to_owned(),
            };
        }
        Happening::ActorFailed {
            path,
            kind: _,
            text,
            pause,
            is_parked,
        } => {
            view.actor = Some(path.to_string());
            let pause = brief(*pause);
            (view.level, view.text) = if *is_parked {
                let text = format!("parked: {text}; comes back fresh in {pause}");
                (Level::Bad, text)
            } else {
                (Level::Warn, format!("{text}; starts again in {pause}"))
            };
        }
        Happening::ActorRestarted { path } => {
            view.actor = Some(path.to_string());
            view.text += "runs again";
        }
    }
}

fn known(version: u64) -> Option<u64> {
    (version > 0).then_some(version)
}

/// A short time in words.
pub(super) fn brief(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else if time < Duration::from_secs(120) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min", time.as_secs() / 60)
    }
}
