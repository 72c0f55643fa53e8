//! What a person may have krane do, over the API.
//!
//! Letting held deletions go (D7) works without `admin.actions`; everything else needs it, and with
//! it a token. Only a program can ask: the header it has to send is one that no page of another
//! site may set.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use krane_actors::operator::{Heard, HoldError, Operator};
use krane_domain::drift;
use krane_domain::ids::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::model::Epoch;

/// The header without which nothing is done, and its value for deletions …
pub const CONFIRMATION: (&str, &str) = ("x-krane-confirm", "allow-deletes");
/// … and for everything else.
pub const ACTION: (&str, &str) = ("x-krane-confirm", "action");
/// Where actions are asked for.
pub const ACTIONS: &str = "/api/v1/actions";

/// Who does what is asked.
#[derive(Clone)]
pub struct Hands {
    /// One for each controller.
    pub operators: Arc<[Operator]>,
    /// `admin.actions`.
    pub are_allowed: bool,
    /// The wall clock, by which holds are read.
    pub epoch: Epoch,
}

/// Something that a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Ask the control plane about every object now.
    Resync {
        /// Whose; all when absent.
        controller: Option<String>,
    },
    /// Try at once what waits for its next try.
    Retry {
        /// Whose; all when absent.
        controller: Option<String>,
        /// Which workload, `NAMESPACE/NAME`; all when absent.
        workload: Option<String>,
    },
    /// Keep the hands off a workload.
    Hold {
        /// Whose it is.
        controller: String,
        /// Which workload, `NAMESPACE/NAME`.
        workload: String,
        /// Until when, RFC 3339, at most 24 hours ahead; absent to end a hold.
        until: Option<String>,
    },
    /// Write log lines of this level from now on, until the process ends.
    LogLevel {
        /// Such as `debug`, or `warn,krane=debug`.
        level: String,
    },
    /// Stop all writes of this process, or allow them again; until it ends.
    Writes {
        /// Whether they are allowed.
        on: bool,
    },
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// `admin.actions` is off.
    #[error("actions are off: set admin.actions = true with an admin.token")]
    Off,
    /// No controller has that name.
    #[error("there is no such controller; they are deployments, sentinels and cilium")]
    NoController,
    /// It was not put on hold.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// A hold that would not be obeyed.
    #[error("such a hold would not be obeyed: {0}")]
    Until(String),
    /// It is no `NAMESPACE/NAME`.
    #[error("name the workload as NAMESPACE/NAME")]
    NoKey,
    /// Policies are never on hold (D22c).
    #[error("network policies cannot be held: without them traffic would flow as it likes")]
    Policy,
    /// The level is none, or lines are not written by krane's own telemetry.
    #[error("the level of log lines stays as it is: {0}")]
    Level(String),
}

impl ActError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Off => StatusCode::FORBIDDEN,
            Self::NoController | Self::Hold(HoldError::NoObject) => StatusCode::NOT_FOUND,
            Self::Hold(HoldError::NotOurs | HoldError::NoWrites) => StatusCode::CONFLICT,
            Self::Hold(HoldError::Refused(_)) => StatusCode::BAD_GATEWAY,
            Self::NoKey | Self::Policy | Self::Level(_) | Self::Until(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// The path for this controller, or its pattern.
#[must_use]
pub fn path(controller: &str) -> String {
    format!("/api/v1/controllers/{controller}/allow-deletes")
}

pub(super) fn router(hands: Hands) -> Router {
    Router::new()
        .route(&path("{name}"), post(allow))
        .route(ACTIONS, post(act))
        .with_state(hands)
}

/// The refusal of a request without this header.
fn unconfirmed(headers: &HeaderMap, (header, value): (&str, &str)) -> Option<Response> {
    if headers.get(header).is_some_and(|given| given == value) {
        return None;
    }
    let error = format!("send the header {header}: {value}");
    Some((StatusCode::FORBIDDEN, Json(json!({"error": error}))).into_response())
}

async fn allow(
    State(hands): State<Hands>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if let Some(refused) = unconfirmed(&headers, CONFIRMATION) {
        return refused;
    }
    let mut all = hands.operators.iter();
    let Some(operator) = all.find(|operator| operator.controller().name() == name) else {
        let error = json!({"error": "there is no such controller"});
        return (StatusCode::NOT_FOUND, Json(error)).into_response();
    };
    let deleted = operator.allow_deletes();
    let deleted: Vec<String> = deleted.iter().map(ToString::to_string).collect();
    Json(json!({"deleted": deleted})).into_response()
}

async fn act(
    State(hands): State<Hands>,
    headers: HeaderMap,
    Json(action): Json<Action>,
) -> Response {
    if let Some(refused) = unconfirmed(&headers, ACTION) {
        return refused;
    }
    match hands.act(&action).await {
        Ok(done) => Json(json!({"done": done})).into_response(),
        Err(error) => {
            let words = json!({"error": error.to_string()});
            (error.status(), Json(words)).into_response()
        }
    }
}

impl Hands {
    /// Does it, and says in a sentence what was done.
    ///
    /// # Errors
    ///
    /// Why nothing was done.
    pub async fn act(&self, action: &Action) -> Result<String, ActError> {
        if !self.are_allowed {
            return Err(ActError::Off);
        }
        match action {
            Action::Resync { controller } => {
                let meant = self.of(controller.as_deref())?;
                Ok(heard(&meant))
            }
            Action::Retry {
                controller,
                workload,
            } => {
                let key = workload.as_deref().map(key).transpose()?;
                let meant = self.of(controller.as_deref())?;
                let tried: usize = meant.iter().map(|it| it.retry(key.as_ref())).sum();
                let when = if meant.iter().all(|it| it.may_write()) {
                    "now"
                } else {
                    "as soon as this process may write"
                };
                Ok(match tried {
                    0 => "nothing waits for a next try".to_owned(),
                    1 => format!("1 object is tried {when}"),
                    many => format!("{many} objects are tried {when}"),
                })
            }
            Action::Hold {
                controller,
                workload,
                until,
            } => self.hold(controller, workload, until.as_deref()).await,
            Action::LogLevel { level } => {
                // Before it is done: afterwards there may be no more lines.
                self.operators
                    .iter()
                    .take(1)
                    .for_each(|it| it.note("log level"));
                log_level(level)
            }
            Action::Writes { on } => Ok(self.write(*on)),
        }
    }

    async fn hold(
        &self,
        controller: &str,
        workload: &str,
        until: Option<&str>,
    ) -> Result<String, ActError> {
        if controller == krane_domain::ids::Controller::Cilium.name() {
            return Err(ActError::Policy);
        }
        let key = key(workload)?;
        let found = self.of(Some(controller))?;
        let operator = found.first().ok_or(ActError::NoController)?;
        if let Some(until) = until {
            self.is_obeyed(until, operator)?;
        }
        let is_news = operator.hold(&key, until).await?;
        Ok(match until {
            Some(until) => format!("krane keeps its hands off {key} until {until}"),
            None if is_news => format!("krane takes care of {key} again"),
            None => format!("{key} was not on hold, krane takes care of it"),
        })
    }

    /// Whether krane would keep to a hold until then.
    fn is_obeyed(&self, until: &str, operator: &Operator) -> Result<(), ActError> {
        let now = self.epoch.at(operator.board.now());
        let until = drift::hold_until(until, now.unix_seconds());
        match until {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(ActError::Until("it is over already".to_owned())),
            Err(problem) => Err(ActError::Until(problem)),
        }
    }

    fn write(&self, on: bool) -> String {
        // They share one switch.
        let is_news = self.operators.first().is_some_and(|it| it.set_writes(on));
        if on {
            self.operators.iter().for_each(Operator::go_on);
        }
        match (on, is_news) {
            (true, true) => "writes are on".to_owned(),
            (false, true) => {
                "writes are off until this process ends or they are switched on; reports and \
                 secrets go on"
                    .to_owned()
            }
            (_, false) => "nothing changed, that is how it was".to_owned(),
        }
    }

    fn of(&self, controller: Option<&str>) -> Result<Vec<&Operator>, ActError> {
        let is_meant =
            |it: &&Operator| controller.is_none_or(|name| name == it.controller().name());
        let meant: Vec<&Operator> = self.operators.iter().filter(is_meant).collect();
        if meant.is_empty() {
            return Err(ActError::NoController);
        }
        Ok(meant)
    }
}

/// What comes of asking these for a pass, in a sentence.
fn heard(meant: &[&Operator]) -> String {
    let mut told: BTreeMap<Heard, Vec<&str>> = BTreeMap::new();
    for operator in meant {
        let name = operator.controller().name();
        told.entry(operator.resync()).or_default().push(name);
    }
    let sentences = told.iter().map(|(heard, names)| {
        let names = names.join(", ");
        match heard {
            Heard::Begins => format!("{names}: every object is asked about now"),
            Heard::AfterReplay => format!(
                "{names}: every object is asked about when the stream has replayed everything"
            ),
            Heard::Standby => {
                format!(
                    "{names}: nothing is asked, this process stands by; ask the one that writes"
                )
            }
            Heard::Down => format!("{names}: when its actor is up again"),
        }
    });
    sentences.collect::<Vec<_>>().join("; ")
}

fn log_level(level: &str) -> Result<String, ActError> {
    let handle = krane_telemetry::level()
        .ok_or_else(|| ActError::Level("this process writes no lines".to_owned()))?;
    let before = handle.get();
    let set = handle.set(level);
    set.map_err(|error| ActError::Level(krane_domain::words::chain(&error)))?;
    Ok(format!(
        "log lines are written at {}, before at {before}",
        handle.get()
    ))
}

fn key(workload: &str) -> Result<ObjectKey, ActError> {
    let parts = workload.split_once('/');
    let (namespace, name) = parts.ok_or(ActError::NoKey)?;
    Ok(ObjectKey::new(namespace, name))
}
