//! Controllers whose first lists of the cluster failed.

use super::{Findings, Problem, ProblemKind};
use crate::admin::model::{ActorView, ControllerView, ErrorView, Level, Stamp};

/// One error that several controllers meet is one problem.
pub(super) fn look(controllers: &[ControllerView], tree: &[ActorView], findings: &mut Findings) {
    let mut errors: Vec<(&ErrorView, Vec<&'static str>, Option<Stamp>)> = Vec::new();
    for controller in controllers.iter().filter(|it| !it.listed) {
        let mut actors = tree.iter();
        let is_its = |actor: &&ActorView| {
            actor.name == controller.name && actor.strategy.is_some() && !actor.parked
        };
        // Without an error it is simply at it.
        let Some(actor) = actors.find(is_its) else {
            continue;
        };
        let Some(error) = &actor.last_error else {
            continue;
        };
        let same = errors.iter_mut().find(|(it, ..)| it.text == error.text);
        match same {
            Some((_, names, next_try)) => {
                names.push(controller.name);
                *next_try = actor.starts_at.into_iter().chain(*next_try).min();
            }
            None => errors.push((error, vec![controller.name], actor.starts_at)),
        }
    }
    for (error, names, next_try) in errors {
        findings
            .headline
            .say(Level::Bad, "the cluster cannot be read");
        findings.add(Problem {
            what: format!("{} could not list the cluster's objects", names.join(", ")),
            why: Some(error.text.clone()),
            remedy: "check the API server and krane's ClusterRole; krane tries again by itself"
                .to_owned(),
            next_try,
            ..Problem::of(ProblemKind::ClusterUnread, Level::Bad).about(names)
        });
    }
}

#[cfg(test)]
mod tests;
