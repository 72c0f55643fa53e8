//! Every story is one that can be played.

use std::collections::{BTreeMap, BTreeSet};

use krane_domain::ids::ObjectKey;

use super::*;

#[test]
fn a_seed_is_a_story() {
    let story = |seed| Script::new(seed).take(200).collect::<Vec<_>>();
    assert_eq!(story(7), story(7));
    assert_ne!(story(7), story(8));
}

/// What is wanted so far, as a watcher of the story knows it.
#[derive(Default)]
struct Watched {
    there: BTreeMap<ObjectKey, Wish>,
    poisoned: Option<ObjectKey>,
}

impl Watched {
    fn comes(&mut self, wish: impl Into<Wish>) {
        let wish = wish.into();
        assert!(self.there.insert(wish.key(), wish).is_none());
    }

    /// As it was before the act, well, and then as it is.
    fn becomes(&mut self, wish: &Wish) -> Wish {
        let key = wish.key();
        assert_ne!(self.poisoned.as_ref(), Some(&key));
        self.there.insert(key, wish.clone()).expect("is there")
    }

    fn stays(&mut self, wish: &Wish) {
        assert_eq!(&self.becomes(wish), wish);
    }

    fn apps(&self) -> usize {
        let wishes = self.there.values();
        wishes.filter(|wish| matches!(wish, Wish::App(_))).count()
    }

    fn see(&mut self, act: &Act) {
        match act {
            Act::Appear(apps) => {
                assert!(!apps.is_empty());
                apps.iter().cloned().for_each(|app| self.comes(app));
            }
            Act::Guard { sentinels, apps } => {
                sentinels.iter().cloned().for_each(|one| self.comes(one));
                for app in apps {
                    self.stays(&app.clone().into());
                    let before = Sentinel {
                        environment: app.namespace,
                        release: 0,
                        replicas: 0,
                    };
                    assert!(self.there.contains_key(&Wish::from(before).key()));
                    app.policies().into_iter().for_each(|one| self.comes(one));
                }
            }
            Act::Release(app) | Act::ApiServerAway(app) => {
                let before = self.becomes(&app.clone().into());
                let release = app.release - 1;
                assert_eq!(
                    before,
                    App {
                        release,
                        ..app.clone()
                    }
                    .into()
                );
            }
            Act::Scale(app) => {
                assert_ne!(self.becomes(&app.clone().into()), app.clone().into());
            }
            Act::Roll(sentinel) | Act::Resize(sentinel) => {
                let wish = sentinel.clone().into();
                assert_ne!(self.becomes(&wish), wish);
            }
            Act::ControlPlaneAway { edited, changed } => {
                self.stays(&edited.clone().into());
                assert_ne!(
                    self.becomes(&changed.clone().into()),
                    changed.clone().into()
                );
            }
            Act::Edit(wish) => self.stays(wish),
            Act::Crash(app) | Act::Fetch(app) => self.stays(&app.clone().into()),
            Act::Steal { thief, victim } => {
                assert_ne!(thief.name, victim.name);
                self.stays(&thief.clone().into());
                self.stays(&victim.clone().into());
            }
            Act::Remove(app) => {
                self.stays(&app.clone().into());
                self.there.remove(&Wish::from(app.clone()).key());
                for policy in app.policies() {
                    assert!(self.there.remove(&Wish::from(policy).key()).is_some());
                }
            }
            Act::Poison(wish) => {
                self.stays(wish);
                self.poisoned = Some(wish.key());
            }
            Act::Mend(wish) => {
                assert_eq!(self.poisoned.take(), Some(wish.key()));
                self.stays(wish);
            }
            Act::Kill(path) => assert!(path.starts_with("root/")),
        }
    }
}

#[test]
fn every_act_is_about_what_is_there_and_well_and_nothing_stays_bad() {
    for seed in 0..50 {
        let mut watched = Watched::default();
        for act in Script::new(seed).take(300) {
            watched.see(&act);
            assert!((3..=6).contains(&watched.apps()), "seed {seed}: {act:?}");
        }
    }
}

#[test]
fn everything_happens_in_two_rounds() {
    let acts = Script::new(3).take(34);
    let kinds: BTreeSet<_> = acts
        .map(|act| {
            let words = format!("{act:?}");
            words.split([' ', '(']).next().map(str::to_owned)
        })
        .collect();
    assert_eq!(kinds.len(), 16, "{kinds:?}");
}
