use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Cursor;

#[test]
fn a_state_that_is_never_applied_holds_the_cursor_below_itself() {
    let mut cursor = Cursor::default();
    for (key, version) in [("a", 1), ("poison", 2), ("b", 3)] {
        cursor.received(&key, version);
    }
    for (key, version) in [("a", 1), ("b", 3)] {
        cursor.attempted(&key, version);
        cursor.applied(&key);
    }
    cursor.attempted(&"poison", 2);
    cursor.failed(&"poison");
    assert_eq!(cursor.value(), 1);
    cursor.received(&"poison", 4);
    cursor.attempted(&"poison", 4);
    cursor.applied(&"poison");
    assert_eq!(cursor.value(), 4);
}

#[test]
fn a_newer_state_that_arrives_during_an_attempt_is_not_covered_by_it() {
    let mut cursor = Cursor::default();
    cursor.received(&"a", 1);
    cursor.attempted(&"a", 1);
    cursor.received(&"a", 2);
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 1);
    cursor.attempted(&"a", 2);
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 2);
}

#[test]
fn a_replaced_state_is_not_passed_before_its_replacement_is_applied() {
    let mut cursor = Cursor::default();
    cursor.received(&"a", 5);
    cursor.received(&"a", 9);
    cursor.received(&"b", 7);
    cursor.attempted(&"b", 7);
    cursor.applied(&"b");
    assert_eq!(cursor.value(), 4);
    cursor.attempted(&"a", 9);
    cursor.applied(&"a");
    assert_eq!(cursor.value(), 9);
}

/// A stream that begins again below them brings older states while a newer one is applied.
#[test]
fn an_older_state_that_arrives_during_an_attempt_shares_its_fate() {
    for is_applied in [true, false] {
        let mut cursor = Cursor::default();
        cursor.received(&"b", 10);
        cursor.received(&"a", 9);
        cursor.attempted(&"a", 9);
        cursor.received(&"a", 5);
        if is_applied {
            cursor.applied(&"a");
        } else {
            cursor.failed(&"a");
        }
        cursor.attempted(&"b", 10);
        cursor.applied(&"b");
        assert_eq!(cursor.value(), if is_applied { 10 } else { 4 });
    }
}

#[derive(Clone, Debug)]
enum Step {
    Receive(u8),
    ReceiveOlder(u8, prop::sample::Index),
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
            1 => (key.clone(), any::<prop::sample::Index>()).prop_map(|(key, older)| Step::ReceiveOlder(key, older)),
            3 => key.clone().prop_map(Step::Attempt),
            3 => key.clone().prop_map(Step::Succeed),
            1 => key.prop_map(Step::Fail),
            1 => Just(Step::Pass),
        ],
        0..80,
    )
}

fn newest_of(received: &[(u8, u64)], key: u8) -> Option<u64> {
    let of_key = received.iter().filter(|(known, _)| *known == key);
    of_key.map(|(_, version)| *version).max()
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
                Step::ReceiveOlder(key, older) => {
                    let older = older.index(usize::try_from(version).unwrap() + 1) as u64;
                    // An object without an unapplied state: whoever owns the cursor passes it.
                    if cursor.is_unapplied(&key) && newest_of(&received, key) >= Some(older) {
                        cursor.received(&key, older);
                        received.push((key, older));
                    }
                }
                Step::Attempt(key) => {
                    let newest = newest_of(&received, key);
                    if let Some(newest) = newest && !attempts.contains_key(&key) {
                        attempts.insert(key, newest);
                        cursor.attempted(&key, newest);
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
            let defined = by_definition(&received, &applied, passed);
            prop_assert!(cursor.value() <= defined.max(before), "ahead");
            before = cursor.value();
        }
        // Once everything is applied, nothing holds the cursor.
        for key in 0..5u8 {
            if received.iter().any(|(known, _)| *known == key) {
                cursor.failed(&key);
                cursor.attempted(&key, version);
                cursor.applied(&key);
            }
        }
        prop_assert_eq!(cursor.value(), version.max(passed));
    }
}
