//! Resolves `${…}` in one value and says what is wrong with it.

use std::collections::BTreeMap;

use super::super::keys::{find, variable};
use super::super::problem::{Problem, ProblemKind};
use super::super::raw::Raw;
use super::super::substitute::{SubstituteError, substitute};
use super::super::tree::Entry;

/// Replaces the references in the value of `path`, or returns the problem with them.
pub(super) fn resolve(
    path: &str,
    entry: &mut Entry,
    env: &BTreeMap<String, String>,
) -> Option<Problem> {
    let error = substitute_in(&mut entry.raw, env).err()?;
    Some(problem(path, entry, error))
}

fn substitute_in(raw: &mut Raw, env: &BTreeMap<String, String>) -> Result<(), SubstituteError> {
    match raw {
        Raw::Text(text) => *text = substitute(text, env)?,
        Raw::List(items) => items
            .iter_mut()
            .try_for_each(|item| substitute_in(item, env))?,
        Raw::Integer(_) | Raw::Float(_) | Raw::Boolean(_) | Raw::Table | Raw::Refused => {}
    }
    Ok(())
}

fn hidden(path: &str) -> (ProblemKind, String) {
    (
        ProblemKind::UndefinedVariable("(name not shown)".to_owned()),
        format!("write ${{NAME}} alone, or set {}", variable(path)),
    )
}

fn problem(path: &str, entry: &Entry, error: SubstituteError) -> Problem {
    let key = find(path);
    let secret = key.is_some_and(|key| key.kind.is_secret());
    // Of a secret that happens to look like a reference, nothing must be repeated.
    let is_reference =
        |name: &str| matches!(&entry.raw, Raw::Text(text) if *text == format!("${{{name}}}"));
    let (kind, help) = match error {
        SubstituteError::Undefined(name) if !secret || is_reference(&name) => {
            let help = format!("set {name}, or write ${{{name}:-default}}");
            (ProblemKind::UndefinedVariable(name), help)
        }
        SubstituteError::Undefined(_) => hidden(path),
        SubstituteError::UndefinedBare(_) if secret => hidden(path),
        SubstituteError::UndefinedBare(name) => (
            ProblemKind::UndefinedVariable(name.clone()),
            format!("set {name}"),
        ),
        SubstituteError::Malformed => (
            ProblemKind::BadReference,
            "write ${NAME}, or $${ for a literal ${".to_owned(),
        ),
    };
    let value = (!secret).then(|| entry.raw.show());
    Problem {
        key: path.to_owned(),
        value,
        origin: Some(entry.origin.clone()),
        kind,
        help,
    }
}
