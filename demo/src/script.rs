//! The story as a pure function of its seed: what happens next, whoever watches.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use fastrand::Rng;

use super::wish::{App, Sentinel, Wish};

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The control plane wants new apps.
    Appear(Vec<App>),
    /// It wants sentinels before environments, and lets the sentinels reach the apps.
    Guard {
        sentinels: Vec<Sentinel>,
        apps: Vec<App>,
    },
    /// It wants another image.
    Release(App),
    /// It wants more or fewer replicas.
    Scale(App),
    /// It wants another image of a sentinel.
    Roll(Sentinel),
    /// It wants more or fewer replicas of a sentinel.
    Resize(Sentinel),
    /// It wants this app gone, and its policies.
    Remove(App),
    /// It wants of this what cannot be.
    Poison(Wish),
    /// It wants something sensible of it again.
    Mend(Wish),
    /// Somebody edits it in the cluster.
    Edit(Wish),
    /// A pod of the app crashes.
    Crash(App),
    /// A pod of the app asks krane for its secrets.
    Fetch(App),
    /// A pod of one app asks for the secrets of another.
    Steal { thief: App, victim: App },
    /// The control plane goes away; meanwhile somebody edits the first app, and in the end the
    /// control plane wants the second one as it is here.
    ControlPlaneAway { edited: App, changed: App },
    /// The API server goes away; meanwhile the control plane wants this.
    ApiServerAway(App),
    /// An actor is killed.
    Kill(&'static str),
}

impl Act {
    /// Whether it takes the control plane or the API server away.
    pub(super) const fn is_outage(&self) -> bool {
        match self {
            Self::ControlPlaneAway { .. } | Self::ApiServerAway(_) => true,
            Self::Appear(_)
            | Self::Guard { .. }
            | Self::Release(_)
            | Self::Scale(_)
            | Self::Roll(_)
            | Self::Resize(_)
            | Self::Remove(_)
            | Self::Poison(_)
            | Self::Mend(_)
            | Self::Edit(_)
            | Self::Crash(_)
            | Self::Fetch(_)
            | Self::Steal { .. }
            | Self::Kill(_) => false,
        }
    }

    /// What the act takes for well.
    pub(super) fn about(&self) -> Vec<Wish> {
        match self {
            Self::Release(app)
            | Self::Scale(app)
            | Self::Crash(app)
            | Self::Fetch(app)
            | Self::ApiServerAway(app) => {
                vec![app.clone().into()]
            }
            Self::Steal { thief, victim } => vec![thief.clone().into(), victim.clone().into()],
            Self::Roll(sentinel) | Self::Resize(sentinel) => vec![sentinel.clone().into()],
            Self::Poison(wish) | Self::Mend(wish) | Self::Edit(wish) => vec![wish.clone()],
            Self::ControlPlaneAway { edited, changed } => {
                vec![edited.clone().into(), changed.clone().into()]
            }
            Self::Appear(_) | Self::Guard { .. } | Self::Remove(_) | Self::Kill(_) => Vec::new(),
        }
    }
}

const NAMES: [&str; 12] = [
    "web", "api", "auth", "cart", "mail", "search", "images", "feed", "stats", "billing", "chat",
    "docs",
];
const NAMESPACES: [&str; 2] = ["shop", "blog"];
const VICTIMS: [&str; 6] = [
    "root/deployments/intake/reconciler",
    "root/sentinels/observer/watch",
    "root/cilium/intake/stream",
    "root/deployments/observer/reporter",
    "root/sentinels/intake/reconciler",
    "root/cilium/intake/resync",
];
const AT_FIRST: usize = 4;
const MOST_REPLICAS: u32 = 4;
const MOST_OF_A_SENTINEL: u32 = 2;

/// The story without end.
#[derive(Debug)]
pub(super) struct Script {
    chance: Rng,
    /// As the control plane wants them once the acts so far are played.
    apps: Vec<App>,
    sentinels: Vec<Sentinel>,
    unused: Vec<&'static str>,
    /// What follows from the last act.
    next: VecDeque<Act>,
    rounds: usize,
    /// The next beat of the round.
    beat: usize,
    poisoned: Option<Wish>,
    kills: usize,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Rng::with_seed(seed);
        let mut unused = NAMES.to_vec();
        chance.shuffle(&mut unused);
        let kills = chance.usize(..VICTIMS.len());
        Self {
            chance,
            apps: Vec::new(),
            sentinels: Vec::new(),
            unused,
            next: VecDeque::new(),
            rounds: 0,
            beat: 0,
            poisoned: None,
            kills,
        }
    }

    fn appear(&mut self, count: usize) -> Act {
        let mut fresh = Vec::new();
        for _ in 0..count {
            let Some(name) = self.unused.pop() else { break };
            fresh.push(App {
                namespace: NAMESPACES[self.chance.usize(..NAMESPACES.len())],
                name,
                release: self.chance.u32(1..9),
                replicas: self.chance.u32(1..=3),
            });
        }
        self.apps.extend(fresh.iter().cloned());
        let sentinels = self.new_sentinels();
        self.next.push_back(Act::Guard {
            sentinels,
            apps: fresh.clone(),
        });
        Act::Appear(fresh)
    }

    /// A sentinel for each environment that has an app and none.
    fn new_sentinels(&mut self) -> Vec<Sentinel> {
        let mut fresh = Vec::new();
        for environment in NAMESPACES {
            let has_app = self.apps.iter().any(|app| app.namespace == environment);
            let mut there = self.sentinels.iter();
            if has_app && !there.any(|sentinel| sentinel.environment == environment) {
                fresh.push(Sentinel {
                    environment,
                    release: self.chance.u32(1..9),
                    replicas: self.chance.u32(1..=MOST_OF_A_SENTINEL),
                });
            }
        }
        self.sentinels.extend(fresh.iter().cloned());
        fresh
    }

    /// An app that is well, any one but the last that was chosen for trouble.
    fn any(&mut self) -> usize {
        loop {
            let index = self.chance.usize(..self.apps.len());
            let app = Wish::App(self.apps[index].clone());
            let poisoned = self.poisoned.as_ref();
            if poisoned.is_none_or(|poisoned| poisoned.key() != app.key()) {
                return index;
            }
        }
    }

    fn scaled(&mut self) -> App {
        let index = self.any();
        let app = &mut self.apps[index];
        app.replicas = app.replicas % MOST_REPLICAS + 1;
        app.clone()
    }

    fn released(&mut self) -> App {
        let index = self.any();
        let app = &mut self.apps[index];
        app.release += 1;
        app.clone()
    }

    fn untouched(&mut self) -> App {
        let index = self.any();
        self.apps[index].clone()
    }

    fn theft(&mut self) -> Act {
        let thief = self.untouched();
        let victim = loop {
            let victim = self.untouched();
            if victim != thief {
                break victim;
            }
        };
        Act::Steal { thief, victim }
    }

    fn policy(&mut self) -> Wish {
        let [ingress, egress] = self.untouched().policies();
        let policy = if self.chance.bool() { ingress } else { egress };
        policy.into()
    }

    /// An app, and in every second round a policy.
    fn victim(&mut self) -> Wish {
        if self.rounds.is_multiple_of(2) {
            self.untouched().into()
        } else {
            self.policy()
        }
    }

    fn sentinel(&mut self) -> Act {
        let index = self.chance.usize(..self.sentinels.len());
        let sentinel = &mut self.sentinels[index];
        if self.rounds.is_multiple_of(2) {
            sentinel.release += 1;
            Act::Roll(sentinel.clone())
        } else {
            sentinel.replicas = sentinel.replicas % MOST_OF_A_SENTINEL + 1;
            Act::Resize(sentinel.clone())
        }
    }
}

impl Iterator for Script {
    type Item = Act;

    fn next(&mut self) -> Option<Act> {
        if let Some(act) = self.next.pop_front() {
            return Some(act);
        }
        if self.apps.is_empty() {
            return Some(self.appear(AT_FIRST));
        }
        let beat = self.beat;
        self.beat += 1;
        Some(match beat {
            0 => Act::Release(self.released()),
            1 => Act::Fetch(self.untouched()),
            2 => self.theft(),
            3 => Act::Edit(self.untouched().into()),
            4 => {
                let victim = self.victim();
                self.poisoned = Some(victim.clone());
                Act::Poison(victim)
            }
            5 => Act::Scale(self.scaled()),
            6 => match self.poisoned.take() {
                Some(wish) => Act::Mend(wish),
                None => Act::Edit(self.untouched().into()),
            },
            7 => Act::Edit(self.policy()),
            8 => Act::Crash(self.untouched()),
            9 => Act::ControlPlaneAway {
                edited: self.untouched(),
                changed: self.scaled(),
            },
            10 => {
                self.kills += 1;
                Act::Kill(VICTIMS[self.kills % VICTIMS.len()])
            }
            11 => self.appear(1),
            12 => self.sentinel(),
            13 => Act::ApiServerAway(self.released()),
            _ => {
                self.beat = 0;
                self.rounds += 1;
                let index = self.any();
                let gone = self.apps.remove(index);
                self.unused.insert(0, gone.name);
                Act::Remove(gone)
            }
        })
    }
}
