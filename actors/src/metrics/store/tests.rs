use std::sync::Arc;

use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use prometheus::Registry;

use super::StoreCollector;
use crate::chance::Chance;
use crate::metrics::tests::scrape;
use crate::store::Store;

#[test]
fn what_the_store_keeps_is_scraped_and_its_totals_are_counters() {
    let rules = Rules::default();
    let store = Arc::new(Store::new(
        Controller::Deployments,
        rules,
        1,
        Chance::new(1),
    ));
    store.inside(|memory| {
        memory.stream.replayed = 3;
        memory.stream.stale = 4;
        memory.stream.unknown = 5;
    });
    let registry = Registry::new();
    let collector = StoreCollector::new(vec![store]).expect("valid names");
    registry.register(Box::new(collector)).expect("registers");
    let text = scrape(&registry);
    for line in [
        "# TYPE krane_replayed_states_total counter",
        "krane_replayed_states_total{controller=\"deployments\"} 3",
        "krane_states_stale_total{controller=\"deployments\"} 4",
        "krane_states_unknown_total{controller=\"deployments\"} 5",
        "krane_watches_broken{controller=\"deployments\"} 0",
        "# TYPE krane_stream_cursor gauge",
        "workqueue_depth{controller=\"deployments\",name=\"deployments\"} 0",
        "# TYPE workqueue_adds_total counter",
        "workqueue_adds_total{controller=\"deployments\",name=\"deployments\"} 0",
        "krane_stream_cursor{controller=\"deployments\"} 0",
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
}
