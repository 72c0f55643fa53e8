//! Whether the control plane is heard. What is true of several controllers is said once.

use std::time::Duration;

use super::{Findings, Problem, ProblemKind};
use crate::model::{ControllerView, Level, Stamp, StreamView};

/// A stream that is lost is opened again sooner: before that nobody is said to be away.
const PATIENCE: Duration = Duration::from_secs(6);

/// What keeps a controller from the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle<'a> {
    /// Nobody answers.
    Silence,
    /// The stream ended with this code, or could not be opened.
    Ended { code: &'a str, is_oversize: bool },
    /// The stream is down for a reason that nobody told yet.
    Reopening,
    /// The stream is open, and calls do not get through.
    Calls,
}

/// Finds what keeps these controllers from the control plane.
pub(super) fn look(controllers: &[&ControllerView], now: Stamp, findings: &mut Findings) {
    let mut groups: Vec<(Obstacle<'_>, Vec<&ControllerView>)> = Vec::new();
    for controller in controllers {
        for obstacle in obstacles(controller, now) {
            match groups.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, group)) => group.push(controller),
                None => groups.push((obstacle, vec![controller])),
            }
        }
    }
    for (obstacle, group) in groups {
        let is_of_all = group.len() == controllers.len();
        headline(obstacle, &group, is_of_all, findings);
        findings.add(problem(obstacle, &group, is_of_all, now));
    }
}

fn obstacles(controller: &ControllerView, now: Stamp) -> Vec<Obstacle<'_>> {
    let stream = &controller.stream;
    let are_calls_paused = controller.breaker != "closed";
    let mut found = Vec::new();
    if !stream.connected {
        found.extend(obstacle(stream, are_calls_paused, now));
    }
    if are_calls_paused && found.first() != Some(&Obstacle::Silence) {
        found.push(Obstacle::Calls);
    }
    found
}

fn obstacle(stream: &StreamView, are_calls_paused: bool, now: Stamp) -> Option<Obstacle<'_>> {
    // One that was open since its last end is down for another reason, which nobody told yet.
    let Some(code) = stream.last_end_code.filter(|_| !stream.was_open_since) else {
        return stream.was_open_since.then_some(Obstacle::Reopening);
    };
    let is_long = |since: Stamp| now.since(&since) >= PATIENCE;
    let is_silent = matches!(code, "unavailable" | "deadline_exceeded")
        && (are_calls_paused || stream.down_since.is_some_and(is_long));
    Some(if is_silent {
        Obstacle::Silence
    } else {
        let is_oversize = stream.last_end_oversize;
        Obstacle::Ended { code, is_oversize }
    })
}

fn headline(
    obstacle: Obstacle<'_>,
    group: &[&ControllerView],
    is_of_all: bool,
    findings: &mut Findings,
) {
    if obstacle == Obstacle::Silence && is_of_all {
        let words = "the control plane does not answer";
        findings.headline.say(Level::Warn, words);
        return;
    }
    let (singular, plural) = match obstacle {
        Obstacle::Silence => (
            "does not hear the control plane",
            "do not hear the control plane",
        ),
        Obstacle::Ended { .. } | Obstacle::Reopening => ("has no stream", "have no stream"),
        Obstacle::Calls => {
            let words = "cannot reach the control plane";
            (words, words)
        }
    };
    for controller in group {
        let name = controller.name;
        findings.headline.of(Level::Warn, name, singular, plural);
    }
}

fn problem(
    obstacle: Obstacle<'_>,
    group: &[&ControllerView],
    is_of_all: bool,
    now: Stamp,
) -> Problem {
    let things = things(group);
    let streams = group.iter().map(|it| &it.stream);
    let down_since = streams.filter_map(|stream| stream.down_since).min();
    let calls = group.iter().filter_map(|it| it.breaker_since).min();
    let next_try = group.iter().filter_map(|it| it.breaker_probe_at);
    // A probe that is under way is no next one.
    let next_try = next_try.filter(|at| *at > now).min();
    let names = group.iter().map(|it| it.name);
    let end = group.iter().find_map(|it| it.stream.last_end.as_deref());
    let end = end.unwrap_or_default();
    let at = |since: Option<Stamp>| {
        since.map_or_else(String::new, |at| format!(" since {} UTC", at.clock()))
    };
    match obstacle {
        Obstacle::Silence => {
            let code = group.iter().find_map(|it| it.stream.last_end_code);
            let about = if is_of_all {
                String::new()
            } else {
                format!(" about {things}")
            };
            Problem {
                what: format!("The control plane does not answer{about}"),
                why: Some(format!(
                    "{things} are not heard{}: what runs goes on running, nothing new comes in and \
                     reports wait ({}: {end})",
                    at(down_since),
                    code.unwrap_or_default(),
                )),
                remedy:
                    "check the control plane and the way to it; krane connects again by itself, \
                         and nothing is lost"
                        .to_owned(),
                since: down_since,
                next_try,
                code: code.map(str::to_owned),
                ..Problem::of(ProblemKind::ControlPlaneAway, Level::Warn).about(names)
            }
        }
        Obstacle::Ended { code, is_oversize } => Problem {
            what: format!("There is no stream of {things}"),
            why: Some(format!("it is not open{}: {code}: {end}", at(down_since))),
            remedy: remedy(code, is_oversize).to_owned(),
            since: down_since,
            code: Some(code.to_owned()),
            ..Problem::of(ProblemKind::StreamDown, Level::Warn).about(names)
        },
        Obstacle::Reopening => Problem {
            what: format!("There is no stream of {things}"),
            why: Some("it is being opened again".to_owned()),
            remedy: "nothing yet; krane connects by itself, what runs goes on running".to_owned(),
            since: down_since,
            ..Problem::of(ProblemKind::StreamDown, Level::Warn).about(names)
        },
        Obstacle::Calls => Problem {
            what: format!("Reports and questions about {things} wait"),
            why: Some(format!(
                "calls to the control plane failed five times in a row, none got through{}",
                at(calls)
            )),
            remedy: "check the control plane and the way to it; nothing is lost".to_owned(),
            since: calls,
            next_try,
            ..Problem::of(ProblemKind::CallsPaused, Level::Warn).about(names)
        },
    }
}

fn remedy(code: &str, is_oversize: bool) -> &'static str {
    if is_oversize {
        return "replace the message that is over the size limit by a smaller one";
    }
    match code {
        "unauthenticated" | "permission_denied" => {
            "check control.token; krane reads it again at every try"
        }
        "unimplemented" => "check that control.url names the control plane",
        _ => "check the control plane; krane connects again by itself, what runs goes on running",
    }
}

/// What these controllers look after, as people call it.
fn things(group: &[&ControllerView]) -> String {
    let names: Vec<&str> = group
        .iter()
        .map(|controller| match controller.name {
            "cilium" => "policies",
            name => name,
        })
        .collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
