//! The story as a pure function of its seed: what happens next, whoever watches.

use fastrand::Rng;

/// A workload of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct App {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    /// Its image is `registry.example/NAME:1.RELEASE.0`.
    pub(super) release: u32,
    pub(super) replicas: u32,
}

impl App {
    pub(super) fn tag(&self) -> String {
        format!("1.{}.0", self.release)
    }

    pub(super) fn image(&self) -> String {
        format!("registry.example/{}:{}", self.name, self.tag())
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The control plane wants new apps.
    Appear(Vec<App>),
    /// It wants another image.
    Release(App),
    /// It wants more or fewer replicas.
    Scale(App),
    /// It wants this app gone.
    Remove(App),
    /// It wants of this app what cannot be.
    Poison(App),
    /// It wants something sensible of the app again.
    Mend(App),
    /// Somebody edits the app in the cluster.
    Edit(App),
    /// A pod of the app crashes.
    Crash(App),
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
            | Self::Release(_)
            | Self::Scale(_)
            | Self::Remove(_)
            | Self::Poison(_)
            | Self::Mend(_)
            | Self::Edit(_)
            | Self::Crash(_)
            | Self::Kill(_) => false,
        }
    }

    /// The apps that the act takes for well.
    pub(super) fn about(&self) -> Vec<&App> {
        match self {
            Self::Release(app)
            | Self::Scale(app)
            | Self::Poison(app)
            | Self::Mend(app)
            | Self::Edit(app)
            | Self::Crash(app)
            | Self::ApiServerAway(app) => vec![app],
            Self::ControlPlaneAway { edited, changed } => vec![edited, changed],
            Self::Appear(_) | Self::Remove(_) | Self::Kill(_) => Vec::new(),
        }
    }
}

const NAMES: [&str; 12] = [
    "web", "api", "auth", "cart", "mail", "search", "images", "feed", "stats", "billing", "chat",
    "docs",
];
const NAMESPACES: [&str; 2] = ["shop", "blog"];
const VICTIMS: [&str; 4] = [
    "root/deployments/intake/reconciler",
    "root/deployments/observer/watch",
    "root/deployments/intake/stream",
    "root/deployments/observer/reporter",
];
const AT_FIRST: usize = 4;
const MOST_REPLICAS: u32 = 4;

/// The story without end.
#[derive(Debug)]
pub(super) struct Script {
    chance: Rng,
    /// As the control plane wants them once the acts so far are played.
    apps: Vec<App>,
    unused: Vec<&'static str>,
    /// The next beat of the round.
    beat: usize,
    poisoned: Option<App>,
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
            unused,
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
        Act::Appear(fresh)
    }

    /// An app that is well, any one but the last that was chosen for trouble.
    fn any(&mut self) -> usize {
        loop {
            let index = self.chance.usize(..self.apps.len());
            let poisoned = self.poisoned.as_ref();
            if poisoned.is_none_or(|poisoned| poisoned.name != self.apps[index].name) {
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
}

impl Iterator for Script {
    type Item = Act;

    fn next(&mut self) -> Option<Act> {
        if self.apps.is_empty() {
            return Some(self.appear(AT_FIRST));
        }
        let beat = self.beat;
        self.beat += 1;
        Some(match beat {
            0 => Act::Release(self.released()),
            1 => Act::Edit(self.untouched()),
            2 => {
                let app = self.untouched();
                self.poisoned = Some(app.clone());
                Act::Poison(app)
            }
            3 => Act::Scale(self.scaled()),
            4 => match self.poisoned.take() {
                Some(app) => Act::Mend(app),
                None => Act::Edit(self.untouched()),
            },
            5 => Act::Crash(self.untouched()),
            6 => Act::ControlPlaneAway {
                edited: self.untouched(),
                changed: self.scaled(),
            },
            7 => {
                self.kills += 1;
                Act::Kill(VICTIMS[self.kills % VICTIMS.len()])
            }
            8 => self.appear(1),
            9 => Act::ApiServerAway(self.released()),
            _ => {
                self.beat = 0;
                let index = self.any();
                let gone = self.apps.remove(index);
                self.unused.insert(0, gone.name);
                Act::Remove(gone)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_seed_is_a_story() {
        let story = |seed| Script::new(seed).take(200).collect::<Vec<_>>();
        assert_eq!(story(7), story(7));
        assert_ne!(story(7), story(8));
    }

    #[test]
    fn every_act_is_about_an_app_that_is_there_and_well_and_nothing_stays_bad() {
        for seed in 0..50 {
            let mut there = BTreeMap::new();
            let mut poisoned: Option<&str> = None;
            for act in Script::new(seed).take(300) {
                let well = |app: &App| {
                    assert_ne!(Some(app.name), poisoned, "seed {seed}: {act:?}");
                    let before = there.get(app.name);
                    before
                        .cloned()
                        .unwrap_or_else(|| panic!("seed {seed}: {act:?}"))
                };
                match &act {
                    Act::Appear(apps) => {
                        assert!(!apps.is_empty(), "seed {seed}");
                        for app in apps {
                            assert!(there.insert(app.name, app.clone()).is_none());
                        }
                    }
                    Act::Release(app) | Act::ApiServerAway(app) => {
                        let before: App = well(app);
                        assert_eq!(before.release + 1, app.release);
                        there.insert(app.name, app.clone());
                    }
                    Act::Scale(app) => {
                        let before: App = well(app);
                        assert_ne!(before.replicas, app.replicas);
                        there.insert(app.name, app.clone());
                    }
                    Act::ControlPlaneAway { edited, changed } => {
                        well(edited);
                        let before: App = well(changed);
                        assert_ne!(before.replicas, changed.replicas);
                        there.insert(changed.name, changed.clone());
                    }
                    Act::Edit(app) | Act::Crash(app) => assert_eq!(&well(app), app),
                    Act::Remove(app) => {
                        well(app);
                        there.remove(app.name);
                    }
                    Act::Poison(app) => {
                        assert_eq!(&well(app), app);
                        poisoned = Some(app.name);
                    }
                    Act::Mend(app) => assert_eq!(poisoned.take(), Some(app.name)),
                    Act::Kill(path) => assert!(path.starts_with("root/deployments/")),
                }
                assert!((3..=6).contains(&there.len()), "seed {seed}");
            }
        }
    }

    #[test]
    fn everything_happens_in_a_round() {
        let acts: Vec<_> = Script::new(3).take(12).collect();
        let kinds: std::collections::BTreeSet<_> = acts
            .iter()
            .map(|act| {
                format!("{act:?}")
                    .split([' ', '('])
                    .next()
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(kinds.len(), 11, "{kinds:?}");
    }
}
