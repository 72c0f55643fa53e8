//! What was not looked at yet, and what krane would not get past.

use std::sync::Arc;

use krane_actors::store::{Outlook, Store};
use krane_domain::backlog::TroubleKind;
use krane_domain::ids::{Controller, Moment};
use serde::Serialize;

/// How much was seen until now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// What was not looked at; empty when everything was.
    pub unsettled: Vec<String>,
    /// What stands in the way of an object.
    pub obstacles: Vec<Obstacle>,
}

/// One object that krane would not bring about, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// Whose object it is.
    pub controller: &'static str,
    /// Which one.
    pub object: String,
    /// The kind of trouble, `blocked`, or `delete_held`.
    pub state: &'static str,
    /// The reason.
    pub why: String,
}

impl Coverage {
    /// Nothing ran, for this reason.
    pub fn nothing(because: &str) -> Self {
        Self {
            unsettled: vec![because.to_owned()],
            obstacles: Vec::new(),
        }
    }

    /// What these controllers have seen. With `may_upgrade` what an earlier krane rendered has its
    /// turn, too.
    pub fn of(stores: &[Arc<Store>], may_upgrade: bool, now: Moment) -> Self {
        let mut coverage = Self::default();
        for store in stores {
            let controller = store.controller();
            let outlook = store.outlook(now);
            let unseen = unseen(&outlook, may_upgrade).into_iter();
            coverage
                .unsettled
                .extend(unseen.map(|words| format!("{}: {words}", controller.name())));
            coverage.obstacles.extend(obstacles(&outlook, controller));
        }
        coverage
    }
}

/// What a controller has yet to look at. What comes first hides what depends on it.
fn unseen(outlook: &Outlook, may_upgrade: bool) -> Vec<String> {
    if !outlook.is_listed {
        return vec!["the cluster was not read".to_owned()];
    }
    let broken = outlook.broken_watches.iter();
    let mut unseen: Vec<String> = broken
        .map(|kind| format!("the watch of {} is broken", kind.kind()))
        .collect();
    if !outlook.is_open {
        unseen.push("the stream of states is not open".to_owned());
        return unseen;
    }
    if outlook.is_replayed {
        match &outlook.last_resync {
            None => unseen.push("the control plane was not asked about every object".to_owned()),
            Some(pass) if pass.failed > 0 => unseen.push(format!(
                "{} of {} questions had no answer from the control plane",
                pass.failed, pass.asked
            )),
            Some(_) => {}
        }
    } else {
        unseen.push("the stream of states has not been replayed".to_owned());
    }
    let on_their_way = outlook.on_their_way;
    if on_their_way > 0 {
        unseen.push(format!("{on_their_way} objects are on their way"));
    }
    let retried = outlook
        .troubles
        .iter()
        .filter(|it| it.trouble.kind == TroubleKind::Transient)
        .count();
    if retried > 0 {
        unseen.push(format!("{retried} objects are tried again"));
    }
    let old = outlook.waiting_to_roll;
    if may_upgrade && old > 0 {
        unseen.push(format!("{old} objects wait to roll their pods"));
    }
    unseen
}

fn obstacles(outlook: &Outlook, controller: Controller) -> Vec<Obstacle> {
    let obstacle = |object: String, state, why| Obstacle {
        controller: controller.name(),
        object,
        state,
        why,
    };
    let troubles = outlook.troubles.iter().map(|it| {
        let why = it.trouble.to_string();
        obstacle(it.key.to_string(), it.trouble.kind.name(), why)
    });
    let blocked = outlook.blocked.iter().map(|(key, on)| {
        let on: Vec<String> = on.iter().map(ToString::to_string).collect();
        let why = format!("it waits for {}", on.join(", "));
        obstacle(key.to_string(), "blocked", why)
    });
    let held = outlook.held.iter().map(|key| {
        let why = "the control plane does not know it any more; with others that is too many to \
                   delete at once, so the brake holds it";
        obstacle(key.to_string(), "delete_held", why.to_owned())
    });
    troubles.chain(blocked).chain(held).collect()
}

#[cfg(test)]
mod tests;
