use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Cursor;

#[test]
fn a_state_that_is_never_applied_holds_the_cursor_below_itself() {
    let mut cursor = Cursor::default();
    for (key, version) in [("a", 1), ("poison", 2), ("b", 3)] {
        cursor.received(&key, version);
    }
    for key in ["a", "b"] {
        cursor.attempted(&key);
        cursor.applied(&key);
    }
    cursor.attempted(&"poison");
    cursor.failed(&"poison");
    assert_eq!(cursor.value(), 1);
    cursor.received(&"poison", 4);
    cursor.attempted(&"poison");
    cursor.applied(&"poison");
    assert_eq!(cursor.value(), 4);
}

#[test]
fn a_newer_state_that_arrives_during_an_attempt_is_not_covered_by_it() {
    let mut cursor = Cursor::default();
    cursor.received(&"a", 1);
    cursor.attempted(&"a");
    cursor.received(&"a", 2);
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 1);
    cursor.attempted(&"a");
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 2);
}

#[test]
fn a_replaced_state_is_not_passed_before_its_replacement_is_applied() {
    let mut cursor = Cursor::default();
    cursor.received(&"a", 5);
    cursor.received(&"a", 9);
    cursor.received(&"b", 7);
    cursor.attempted(&"b");
    cursor.applied(&"b");
    assert_eq!(cursor.value(), 4);
    cursor.attempted(&"a");
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 9);
}

#[derive(Clone, Debug)]
enum Step {
    Receive(u8),
    Attempt(u8),
    Succeed(u8),
    Fail(u8),
    Pass,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u8..5;
    prop::collection::vec(
        prop_oneof![
            4 => key.clone().prop_map(Step::Receive),
            3 => key.clone().prop_map(Step::Attempt),
            3 => key.clone().prop_map(Step::Succeed),
            1 => key.prop_map(Step::Fail),
            1 => Just(Step::Pass),
        ],
        0..80,
    )
}

/// The definition, word for word, over the whole history.
fn by_definition(received: &[(u8, u64)], applied: &BTreeMap<u8, u64>, passed: u64) -> u64 {
    let highest = received
        .iter()
        .map(|(_, version)| *version)
        .max()
        .unwrap_or(0)
        .max(passed);
    (0..=highest)
        .rev()
        .find(|candidate| {
            received
                .iter()
                .filter(|(_, version)| version <= candidate)
                .all(|(key, version)| applied.get(key).is_some_and(|newest| newest >= version))
        })
        .unwrap_or(0)
}

proptest! {
    #[test]
    fn the_cursor_equals_its_definition_at_every_step(steps in steps()) {
        let mut cursor = Cursor::default();
        let mut received = Vec::new();
        let mut applied = BTreeMap::new();
        let mut attempts: BTreeMap<u8, u64> = BTreeMap::new();
        let mut passed = 0;
        let mut version = 0;
        let mut before = 0;
        for step in steps {
            match step {
                Step::Receive(key) => {
                    version += 1;
                    cursor.received(&key, version);
                    received.push((key, version));
                }
                Step::Attempt(key) => {
                    let newest = received.iter().rev().find(|(known, _)| *known == key);
                    if let Some((_, newest)) = newest && !attempts.contains_key(&key) {
                        attempts.insert(key, *newest);
                        cursor.attempted(&key);
                    }
                }
                Step::Succeed(key) => {
                    if let Some(newest) = attempts.remove(&key) {
                        applied.insert(key, newest);
                        cursor.applied(&key);
                    }
                }
                Step::Fail(key) => {
                    if attempts.remove(&key).is_some() {
                        cursor.failed(&key);
                    }
                }
                Step::Pass => {
                    version += 1;
                    passed = version;
                    cursor.passed(version);
                }
            }
            prop_assert!(cursor.value() >= before, "never backwards");
            prop_assert!(cursor.value() <= by_definition(&received, &applied, passed));
            before = cursor.value();
        }
        // Once everything is applied, nothing holds the cursor.
        for key in 0..5u8 {
            if received.iter().any(|(known, _)| *known == key) {
                cursor.failed(&key);
                cursor.attempted(&key);
                cursor.applied(&key);
            }
        }
        prop_assert_eq!(cursor.value(), version.max(passed));
    }
}
