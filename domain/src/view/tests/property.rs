//! Whatever was shown before, in whatever order of versions.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// One thing that a watch, an answer or a list says.
#[derive(Clone, Debug)]
enum Said {
    Shown(LiveObject),
    Gone(LiveObject),
    Listed(Vec<LiveObject>),
}

/// Few names, uids and versions, so that they meet.
fn object() -> impl Strategy<Value = LiveObject> {
    (0_u8..3, 0_u8..2, 1_u64..40, 0_u64..3).prop_map(|(name, copy, version, fingerprint)| {
        live(
            &format!("n{name}"),
            &format!("u{name}-{copy}"),
            version,
            fingerprint,
        )
    })
}

/// At most one object of each name.
fn list() -> impl Strategy<Value = Vec<LiveObject>> {
    vec(object(), 0..5).prop_map(|mut objects| {
        let mut names = BTreeSet::new();
        objects.retain(|live| names.insert(live.reference.clone()));
        objects
    })
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        object().prop_map(Said::Shown),
        object().prop_map(Said::Gone),
        list().prop_map(Said::Listed),
    ]
}

fn held(view: &View) -> Vec<LiveObject> {
    view.workloads().map(|live| (**live).clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A list that nothing came after is the view, whatever versions and uids were seen before (F3).
    #[test]
    fn after_a_complete_list_the_view_is_that_list(
        before in vec(said(), 0..30),
        mut listed in list(),
        version in 1_u64..40,
    ) {
        let mut view = View::new(Controller::Deployments);
        for said in before {
            match said {
                Said::Shown(live) => drop(view.insert(live)),
                Said::Gone(live) => {
                    drop(view.remove(&live.reference, &live.uid, live.resource_version));
                }
                Said::Listed(listed) => {
                    view.list_begins(Resource::ReplicaSet);
                    drop(view.replace(Resource::ReplicaSet, listed, version));
                }
            }
        }
        let changed: BTreeSet<WorkKey> = {
            let before = held(&view);
            let differs = |live: &&LiveObject| {
                let twin = before.iter().find(|known| known.uid == live.uid);
                twin.is_none_or(|known| known.fingerprint != live.fingerprint)
            };
            let news = listed.iter().filter(differs);
            let gone = before
                .iter()
                .filter(|known| listed.iter().all(|live| live.uid != known.uid));
            news.chain(gone)
                .map(|live| WorkKey::Workload(live.reference.key()))
                .collect()
        };
        view.list_begins(Resource::ReplicaSet);
        let effects = view.replace(Resource::ReplicaSet, listed.clone(), version);
        listed.sort_by(|one, other| one.reference.cmp(&other.reference));
        prop_assert_eq!(held(&view), listed);
        // Whoever looks after what differs is told to look.
        prop_assert_eq!(effects.look, changed);
    }
}
