//! Controllers whose first lists of the cluster failed.

use super::{Findings, Problem, ProblemKind};
use crate::model::{ActorView, ControllerView, Level};

/// Finds them. An API server that answers nobody is told already.
pub(super) fn look(controllers: &[ControllerView], tree: &[ActorView], findings: &mut Findings) {
    for controller in controllers.iter().filter(|it| !it.listed) {
        let name = controller.name;
        let mut actors = tree.iter();
        let is_its = |it: &&ActorView| it.name == name && it.strategy.is_some() && !it.parked;
        let actor = actors.find(is_its);
        let error = actor.and_then(|actor| actor.last_error.as_ref());
        let broken = &controller.watches.broken;
        let kinds: Vec<&str> = broken.iter().map(|watch| watch.kind).collect();
        // Without an error it is simply at it.
        let (kinds, why, since) = match (broken.first(), error) {
            (Some(first), _) => (kinds.join(", "), &first.error, Some(first.since)),
            (None, Some(error)) => ("the cluster's objects".to_owned(), &error.text, None),
            (None, None) => continue,
        };
        findings
            .headline
            .say(Level::Bad, "the cluster cannot be read");
        findings.add(Problem {
            what: format!("{name} could not list {kinds}"),
            why: Some(why.clone()),
            remedy: "check the API server and krane's ClusterRole; krane tries again by itself"
                .to_owned(),
            since,
            next_try: actor.and_then(|actor| actor.starts_at),
            ..Problem::of(ProblemKind::ClusterUnread, Level::Bad).about([name])
        });
    }
}

#[cfg(test)]
mod tests;
