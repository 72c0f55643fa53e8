//! `${NAME}` holds for any text.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::substitute::{SubstituteError, substitute};
use super::Given;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn references_are_replaced_and_everything_else_stays() {
    let env = env(&[("A", "1"), ("EMPTY", "")]);
    for (text, expected) in [
        ("${A}", "1"),
        ("x${A}y${A}z", "x1y1z"),
        ("${MISSING:-d}", "d"),
        ("${MISSING:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${A:-d}", "1"),
        ("$A", "1"),
        ("$a", "$a"),
        ("x$A", "x$A"),
        ("$${A}", "${A}"),
        ("pa$$word$", "pa$$word$"),
        ("100$", "100$"),
    ] {
        assert_eq!(substitute(text, &env).as_deref(), Ok(expected), "{text}");
    }
    let undefined = |name: &str| Err(SubstituteError::Undefined(name.to_owned()));
    assert_eq!(substitute("a${B}", &env), undefined("B"));
    assert_eq!(
        substitute("$B", &env),
        Err(SubstituteError::UndefinedBare("B".to_owned()))
    );
    for text in ["${A", "${}", "${a-b}", "${1}", "${:-d}"] {
        assert_eq!(
            substitute(text, &env),
            Err(SubstituteError::Malformed),
            "{text}"
        );
    }
}

#[test]
fn a_variable_cannot_become_toml() {
    let given = Given::required()
        .env("INJECTED", "x\"\nrpc_port = 1\n[registry]\nurl = \"")
        .file("storage_class_name = \"${INJECTED}\"");
    let problems = given.problems();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].key, "storage_class_name");
}

#[test]
fn variables_and_flags_are_taken_as_they_are() {
    let given = Given::required().env("KRANE__STORAGE_CLASS_NAME", "${HOME}");
    assert_eq!(given.settings().storage_class_name, "${HOME}");
    assert_eq!(
        given
            .set("storage_class_name", "$HOME")
            .settings()
            .storage_class_name,
        "$HOME"
    );
}

#[test]
fn a_reference_that_a_higher_layer_replaces_is_not_looked_at() {
    let given = Given::required().file("storage_class_name = '${MISSING}'");
    given.refused(
        "storage_class_name refers to the variable MISSING, which is not set; \
         value \"${MISSING}\"; from file {dir}/1.toml; set MISSING, or write ${MISSING:-default}",
    );
    assert_eq!(
        given
            .set("storage_class_name", "gp3")
            .settings()
            .storage_class_name,
        "gp3"
    );
}

proptest! {
    #[test]
    fn text_without_a_dollar_is_unchanged(text in "[^$]*") {
        prop_assert_eq!(substitute(&text, &BTreeMap::new()), Ok(text));
    }

    #[test]
    fn escaped_text_comes_back(text in "x(\\$|\\{|\\}|[a-zA-Z_:-])*") {
        let escaped = text.replace("${", "$${");
        prop_assert_eq!(substitute(&escaped, &BTreeMap::new()), Ok(text));
    }

    #[test]
    fn a_value_is_inserted_once_and_never_read_again(
        before in "[^$]*", value in "\\PC*", after in "[^$]*",
    ) {
        let text = format!("{before}${{NAME}}{after}");
        let result = substitute(&text, &env(&[("NAME", &value)]));
        prop_assert_eq!(result, Ok(format!("{before}{value}{after}")));
    }

    #[test]
    fn a_default_is_used_exactly_when_the_variable_is_unset_or_empty(
        value in proptest::option::of("[a-z]{0,3}"), default in "[^}]*",
    ) {
        let pairs: Vec<_> = value.iter().map(|value| ("NAME", value.as_str())).collect();
        let result = substitute(&format!("${{NAME:-{default}}}"), &env(&pairs));
        let expected = value.clone().filter(|value| !value.is_empty()).unwrap_or(default);
        prop_assert_eq!(result, Ok(expected));
    }

    #[test]
    fn no_text_can_make_it_panic(text in "(\\$|\\{|\\}|:-|A|é|\\PC)*") {
        let _ = substitute(&text, &env(&[("A", "${A}")]));
    }
}
