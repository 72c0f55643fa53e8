use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::labels;
use krane_domain::object::{LiveObject, ObjectRef};

use super::Store;
use crate::chance::Chance;
use crate::ports::Item;

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
    store.with(|memory| {
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
