//! A fuzzer that finds nothing is worth nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Fuzz;

fn what_it_finds(read: impl Fn(&[u8])) -> String {
    let fuzz = Fuzz::new("a reader")
        .document(br#"{"name":"value","list":[1,2,3]}"#.as_slice())
        .words(["null", "-1", "]]"]);
    let found = catch_unwind(AssertUnwindSafe(|| fuzz.run(read)));
    let panic = found.expect_err("the defect is found");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_reader_that_panics_on_a_word_is_found_and_the_input_is_small() {
    let found = what_it_finds(|input| {
        let text = String::from_utf8_lossy(input);
        assert!(!text.contains(":null"), "a defect");
    });
    assert!(
        found.ends_with("it panics at \":null\"; show it again with KRANE_FUZZ_INPUT=3a6e756c6c"),
        "{found}"
    );
}

#[test]
fn a_reader_that_cannot_go_deep_is_found() {
    let found = what_it_finds(|input| {
        let deepest = input.split(|byte| *byte != b'[').map(<[u8]>::len).max();
        assert!(deepest.unwrap_or(0) < 200, "the stack is used up");
    });
    assert!(
        found.contains(&format!("at {:?};", "[".repeat(200))),
        "{found}"
    );
}

#[test]
fn whole_documents_are_shown_first_and_most_of_all_is_broken() {
    let whole = br#"{"a":1}"#;
    let (count, changed, first) = (Cell::new(0_usize), Cell::new(0_usize), Cell::new(false));
    let different = RefCell::new(BTreeSet::new());
    Fuzz::new("a counter").document(&whole[..]).run(|input| {
        if count.get() == 0 {
            first.set(input == whole);
        }
        count.set(count.get() + 1);
        changed.set(changed.get() + usize::from(input != whole));
        different.borrow_mut().insert(input.to_vec());
    });
    assert!(first.get());
    assert!(
        changed.get() * 10 > count.get() * 7,
        "{changed:?} of {count:?}"
    );
}
