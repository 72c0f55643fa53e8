use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::brake::Verdict;
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Rules;
use krane_domain::labels;
use krane_domain::object::{LiveObject, ObjectRef};
use krane_ports::Item;

use super::Store;
use crate::chance::Chance;

fn seen(controller: Controller) -> usize {
    let store = Store::new(controller, Rules::default(), 1 << 20, Chance::new(7));
    let ours = (labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned());
    let item = Item::Object(LiveObject {
        reference: ObjectRef::new(controller.primary(), "ns", "a"),
        uid: "u".into(),
        resource_version: 1,
        labels: BTreeMap::from([ours]),
        is_terminating: false,
        fingerprint: 1,
        content: "{}".into(),
    });
    store.arrange(|memory| {
        memory.see(item.clone(), Duration::ZERO);
        memory.lose(&item, Duration::ZERO);
        memory.to_observe.len()
    })
}

/// Where there is no reporter a list of what is to be reported would only grow.
#[test]
fn what_is_never_reported_is_not_remembered_to_be() {
    assert_eq!(seen(Controller::Cilium), 0);
    assert_eq!(seen(Controller::Sentinels), 1);
    assert_eq!(seen(Controller::Deployments), 1);
}

/// Whose turn it is to write changes nothing about what was deleted within the hour (D7).
#[test]
fn another_term_has_the_allowance_that_is_left() {
    let rules = Rules::default();
    let store = Store::new(Controller::Deployments, rules, 1 << 20, Chance::new(7));
    let judged = |names: &[&str], seconds| {
        let unknown = names.iter().map(|name| ObjectKey::new("ns", *name));
        let (unknown, now) = (unknown.collect(), Duration::from_secs(seconds));
        store.inside(|memory| memory.brake.judge(unknown, 5, 10, now))
    };
    store.enter_term(1, Duration::ZERO);
    assert_ne!(judged(&["a", "b", "c"], 1), Verdict::Hold);
    store.enter_term(2, Duration::from_secs(2));
    assert_eq!(judged(&["d"], 3), Verdict::Hold);
    store.enter_term(3, Duration::from_secs(4));
    store.inside(|memory| assert!(memory.brake.held().is_empty(), "it is asked about anew"));
    assert_ne!(judged(&["d"], 3_700), Verdict::Hold);
}
