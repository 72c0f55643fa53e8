//! Whatever happens in whatever order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Receive(u8, bool),
    ReceiveOlder(u8, prop::sample::Index),
    Next,
    End(u8),
    Look(u8),
    Wait,
    Abandon,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        4 => (0u8..4, any::<bool>()).prop_map(|(key, delete)| Step::Receive(key, delete)),
        1 => (0u8..4, any::<prop::sample::Index>()).prop_map(|(key, older)| Step::ReceiveOlder(key, older)),
        4 => Just(Step::Next),
        4 => (0u8..4).prop_map(Step::End),
        2 => (0u8..4).prop_map(Step::Look),
        2 => Just(Step::Wait),
        1 => Just(Step::Abandon),
    ];
    prop::collection::vec(one, 0..120)
}

proptest! {
    /// Whatever happens, once lanes succeed everything received is applied, the newest of each
    /// object last, and the cursor is at the end.
    #[test]
    fn nothing_is_lost_in_any_order_of_events(steps in steps(), outcomes in prop::collection::vec(0u8..5, 120)) {
        let mut backlog = Backlog::default();
        let mut now = at(0);
        let mut version = 0;
        let mut newest: BTreeMap<String, u64> = BTreeMap::new();
        let mut running: BTreeMap<WorkKey, u64> = BTreeMap::new();
        let mut applied: BTreeMap<String, u64> = BTreeMap::new();
        let mut before = 0;
        for (step, outcome) in steps.into_iter().zip(outcomes) {
            match step {
                Step::Receive(key, is_delete) => {
                    version += 1;
                    let name = format!("k{key}");
                    newest.insert(name.clone(), version);
                    let state = if is_delete { unwants(&name, version) } else { wants(&name, version) };
                    prop_assert_eq!(backlog.receive(state, now), Receipt::Accepted);
                }
                Step::ReceiveOlder(key, older) => {
                    let name = format!("k{key}");
                    if let Some(newest) = newest.get(&name).copied() {
                        let older = older.index(usize::try_from(newest).unwrap()) as u64;
                        prop_assert_eq!(backlog.receive(wants(&name, older), now), Receipt::Stale);
                    }
                }
                Step::Next => {
                    if let Some(task) = backlog.next(now) {
                        let version = task.state.map_or(0, |state| state.version);
                        prop_assert!(running.insert(task.key, version).is_none(), "two lanes");
                    }
                }
                Step::End(key) => {
                    let key = work(&format!("k{key}"));
                    if let Some(version) = running.remove(&key) {
                        let outcome = match outcome {
                            0 => trouble(TroubleKind::Quarantined),
                            1 => trouble(TroubleKind::Transient),
                            2 => Outcome::Deferred { wrote: false },
                            _ => DONE,
                        };
                        if outcome == DONE {
                            let WorkKey::Workload(object) = &key else { unreachable!() };
                            let last = applied.insert(object.name.to_string(), version);
                            prop_assert!(last.is_none_or(|last| last <= version), "older beat newer");
                        }
                        backlog.finish(&key, outcome, now, 0.5);
                    }
                }
                Step::Look(key) => {
                    backlog.look(&work(&format!("k{key}")), now);
                }
                Step::Wait => {
                    now += at(7);
                    backlog.wake_due(now);
                }
                Step::Abandon => {
                    backlog.abandon_lanes(now);
                    running.clear();
                }
            }
            prop_assert!(backlog.cursor() >= before);
            before = backlog.cursor();
            for (name, newest) in &newest {
                if *newest <= backlog.cursor() {
                    prop_assert!(applied.get(name).is_some_and(|applied| applied >= newest), "cursor ahead");
                }
            }
        }
        for key in running.keys().cloned().collect::<Vec<_>>() {
            backlog.finish(&key, DONE, now, 0.5);
        }
        for _ in 0..40 {
            now += at(700);
            backlog.wake_due(now);
            while let Some(task) = backlog.next(now) {
                backlog.finish(&task.key, DONE, now, 0.5);
            }
        }
        prop_assert_eq!(backlog.cursor(), version);
        prop_assert_eq!(backlog.bytes(), 0);
        prop_assert_eq!((backlog.in_flight(), backlog.unapplied()), (0, 0));
        prop_assert_eq!(backlog.in_trouble().count(), 0);
    }
}
