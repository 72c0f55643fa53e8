//! The cases of `docs/cases.md` and the tests that cite them.

#![expect(
    clippy::expect_used,
    reason = "a test fails where it meets the unexpected"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tidy::{CODE, root, sources};

/// A test, by its path with the name of its crate in front, and the ids that its comment cites.
type Tests = BTreeMap<String, BTreeSet<String>>;

/// Ids such as A43 in round brackets.
fn ids(text: &str) -> BTreeSet<String> {
    let brackets = text.split('(').skip(1);
    let words = brackets.filter_map(|rest| rest.split_once(')').map(|(word, _)| word));
    let is_id = |word: &&str| {
        word.len() == 3
            && word.starts_with(['A', 'B', 'C'])
            && word.bytes().skip(1).all(|digit| digit.is_ascii_digit())
    };
    words.filter(is_id).map(str::to_owned).collect()
}

/// `actors::controller::tests::states` of `actors/src/controller/tests/states.rs`.
fn module(file: &Path) -> String {
    let path = file.strip_prefix(root()).expect("a file of the repository");
    let path = path.with_extension("");
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let parts: Vec<&str> = match parts[..] {
        ["src", ref rest @ ..] => [&["krane"], rest].concat(),
        ["tests", ref rest @ ..] | [_, "tests", ref rest @ ..] => rest.to_vec(),
        ["actors" | "edge", name, "src", ref rest @ ..] | [name, "src", ref rest @ ..] => {
            [&[name], rest].concat()
        }
        ref other => other.to_vec(),
    };
    let is_root = |part: &&str| !matches!(*part, "main" | "lib");
    parts
        .into_iter()
        .filter(is_root)
        .collect::<Vec<_>>()
        .join("::")
}

/// The tests of a file.
fn tests_of(file: &Path, text: &str) -> Tests {
    let mut found = Tests::new();
    let mut module = module(file);
    let (mut comment, mut is_test) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            comment.push_str(words);
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line == "mod tests {" {
            module.push_str("::tests");
        } else if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            if is_test {
                found.insert(format!("{module}::{name}"), ids(&comment));
            }
            (comment, is_test) = (String::new(), false);
        }
    }
    found
}

fn all_tests() -> Tests {
    let files = CODE.into_iter().flat_map(|folder| sources(folder, true));
    files
        .flat_map(|(file, text)| tests_of(&file, &text))
        .collect()
}

/// What the table says: an id, and the tests that prove it.
fn table() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(root().join("docs/cases.md")).expect("the cases");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let id = cells.first()?.strip_prefix("| ")?;
        let named = cells.last()?.split('`').skip(1).step_by(2);
        (ids(&format!("({id})")).len() == 1)
            .then(|| (id.to_owned(), named.map(str::to_owned).collect()))
    });
    rows.collect()
}

/// Nobody finds a case that only its table knows, and a test that moved takes its row along.
#[test]
fn every_case_has_tests_that_cite_it_and_every_citation_is_a_case() {
    let (tests, table) = (all_tests(), table());
    assert!(table.len() > 70, "{} rows", table.len());
    for (id, named) in &table {
        assert!(!named.is_empty(), "{id} names no test");
        for name in named {
            let cited = tests.get(name);
            let cited = cited.unwrap_or_else(|| panic!("{id} names {name}, which is no test"));
            assert!(cited.contains(id), "{name} does not cite ({id})");
        }
    }
    let cited: BTreeSet<&String> = tests.values().flatten().collect();
    let known: BTreeSet<&String> = table.keys().collect();
    assert_eq!(
        cited, known,
        "ids in comments of tests and in docs/cases.md"
    );
}

#[test]
fn tests_are_read_with_their_comments() {
    let text = "/// Theirs (B01), and\n/// more (C02).\n#[test]\nfn one() {}\n\
                fn helper() {}\nmod tests {\n#[tokio::test(start_paused = true)]\n\
                async fn two() {}\n}";
    let found = tests_of(&root().join("actors/src/lanes/settle.rs"), text);
    let expected = [
        ("actors::lanes::settle::one", vec!["B01", "C02"]),
        ("actors::lanes::settle::tests::two", vec![]),
    ];
    let expected = expected.map(|(name, ids)| {
        let ids = ids.into_iter().map(str::to_owned).collect();
        (name.to_owned(), ids)
    });
    assert_eq!(found, Tests::from(expected));
    let paths = [
        "src/run/view.rs",
        "tests/it/main.rs",
        "tests/e2e/faults/views.rs",
        "demo/tests/demo/story.rs",
        "edge/vault/src/lib.rs",
    ];
    let modules = paths.map(|path| module(&root().join(path)));
    let expected = [
        "krane::run::view",
        "it",
        "e2e::faults::views",
        "demo::story",
        "vault",
    ];
    assert_eq!(modules, expected);
}
