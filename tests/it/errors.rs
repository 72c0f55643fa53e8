//! Every error code of krane against the page that explains them.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail them")]

use std::collections::BTreeSet;

use crate::tidy::{WORLD, code, sources};

const PAGE: &str = include_str!("../../docs/errors.md");

/// Every text of the sources that is a code and nothing else.
fn codes_of_the_sources() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (_, text) in WORLD.into_iter().flat_map(|folder| sources(folder, false)) {
        let code = code(&text);
        for text in code.split('"').filter(|text| text.starts_with("krane::")) {
            let is_code = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b':' | b'_');
            if text.bytes().all(is_code) && !text.ends_with(':') {
                codes.insert(text.to_owned());
            }
        }
    }
    codes
}

fn codes_of_the_page() -> Vec<String> {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("### `"));
    headings
        .filter_map(|line| line.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_code_is_explained_and_no_other() {
    let (used, explained) = (codes_of_the_sources(), codes_of_the_page());
    assert!(used.len() > 40, "{used:?}");
    let unique: BTreeSet<String> = explained.iter().cloned().collect();
    assert_eq!(unique.len(), explained.len(), "a code is explained twice");
    let unexplained: Vec<_> = used.difference(&unique).collect();
    assert!(
        unexplained.is_empty(),
        "not in docs/errors.md: {unexplained:?}"
    );
    let unused: Vec<_> = unique.difference(&used).collect();
    assert!(unused.is_empty(), "only in docs/errors.md: {unused:?}");
}

#[test]
fn every_explanation_has_its_anchor_a_cause_and_a_fix() {
    for code in codes_of_the_page() {
        let heading = format!("### `{code}`");
        let (before, after) = PAGE.split_once(&heading).unwrap();
        let (_, anchor) = krane::preflight::findings::docs(&code)
            .split_once('#')
            .map(|(file, anchor)| (file.to_owned(), anchor.to_owned()))
            .unwrap();
        let anchor = format!("<a id=\"{anchor}\"></a>");
        assert!(before.trim_end().ends_with(&anchor), "{code}: {anchor}");
        let text = after.split("\n### ").next().unwrap_or_default();
        for part in ["*Cause:* ", "*Fix:* "] {
            assert!(text.contains(part), "{code}: {part}");
        }
    }
}
