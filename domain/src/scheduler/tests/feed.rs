//! However slow a follower: it holds little, and ends with what is true.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::ids::{Controller, ObjectKey};
use crate::scheduler::{Feed, Watched};

const OF: Controller = Controller::Sentinels;

fn state(name: &str, available: u32) -> Arc<Watched> {
    let key = ObjectKey::new("sentinel", name);
    Arc::new(Watched::Sentinel { key, available })
}

fn taken(feed: &mut Feed) -> Vec<(String, u32)> {
    std::iter::from_fn(|| feed.take())
        .map(|state| match &*state {
            Watched::Sentinel { key, available } => (key.name.to_string(), *available),
            other @ Watched::Deployment { .. } => panic!("{other:?}"),
        })
        .collect()
}

fn gone(feed: &mut Feed, name: &str) {
    let key = ObjectKey::new("sentinel", name);
    feed.lose(OF, Arc::new(Watched::gone(OF, &key).expect("told")));
}

fn said(name: &str, available: u32) -> (String, u32) {
    (name.to_owned(), available)
}

#[test]
fn each_state_is_told_once_and_the_newest_only() {
    let mut feed = Feed::default();
    feed.show(OF, state("b", 1));
    feed.show(OF, state("a", 1));
    feed.show(OF, state("b", 2));
    assert_eq!(taken(&mut feed), [said("b", 2), said("a", 1)]);
    feed.show(OF, state("b", 2));
    assert_eq!(taken(&mut feed), []);
}

#[test]
fn who_comes_late_is_not_told_something_older() {
    let mut feed = Feed::default();
    feed.show(OF, state("a", 2));
    feed.show_first(OF, state("a", 1));
    feed.show_first(OF, state("b", 1));
    assert_eq!(taken(&mut feed), [said("a", 2), said("b", 1)]);
}

#[test]
fn what_is_gone_is_told_once_to_who_knew_of_it() {
    let mut feed = Feed::default();
    feed.show(OF, state("told", 1));
    assert_eq!(taken(&mut feed), [said("told", 1)]);
    feed.show(OF, state("untold", 1));
    for name in ["told", "untold", "unknown", "told"] {
        gone(&mut feed, name);
    }
    assert_eq!(taken(&mut feed), [said("told", 0)]);
    gone(&mut feed, "told");
    assert_eq!(taken(&mut feed), []);
    assert_eq!(feed.subjects().count(), 0);
}

#[test]
fn what_comes_back_before_it_was_told_gone_is_told_as_it_is() {
    let mut feed = Feed::default();
    feed.show(OF, state("a", 1));
    taken(&mut feed);
    gone(&mut feed, "a");
    feed.show(OF, state("a", 1));
    assert_eq!(taken(&mut feed), [said("a", 1)]);
}

/// A follower that takes nothing while objects come and go by the thousands.
#[test]
fn churn_fills_no_memory() {
    let mut feed = Feed::default();
    feed.show(OF, state("old", 1));
    taken(&mut feed);
    for number in 0..10_000 {
        let name = format!("s{number}");
        feed.show(OF, state(&name, 1));
        feed.show(OF, state("old", number));
        gone(&mut feed, &name);
    }
    assert_eq!((feed.subjects().count(), feed.due()), (1, 1));
}

proptest! {
    #[test]
    fn every_follower_ends_with_what_is_true(
        steps in prop::collection::vec((0u8..5, 0u8..4, 0u32..3), 0..200),
    ) {
        let mut feed = Feed::default();
        let mut truth = BTreeMap::new();
        let mut heard = BTreeMap::new();
        let mut hear = |feed: &mut Feed, at_most: usize| {
            for _ in 0..at_most {
                let Some(state) = feed.take() else { break };
                let Watched::Sentinel { key, available } = &*state else { unreachable!() };
                // A sentinel that is there has at least one pod here.
                if *available == 0 {
                    assert!(heard.remove(&*key.name.to_string()).is_some(), "gone twice");
                } else {
                    heard.insert(key.name.to_string(), *available);
                }
            }
            heard.clone()
        };
        for (step, object, number) in steps {
            let name = format!("o{object}");
            match step {
                0 | 1 => {
                    truth.insert(name.clone(), number + 1);
                    feed.show(OF, state(&name, number + 1));
                }
                2 => {
                    truth.remove(&name);
                    gone(&mut feed, &name);
                }
                3 => if let Some(number) = truth.get(&name) {
                    feed.show_first(OF, state(&name, *number));
                },
                _ => { hear(&mut feed, 1); }
            }
            prop_assert!(feed.due() <= 4);
        }
        prop_assert_eq!(hear(&mut feed, usize::MAX), truth);
    }
}
