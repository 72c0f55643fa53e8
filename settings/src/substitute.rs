//! `${NAME}` in values of configuration files.
//!
//! It happens after parsing, so a variable's content can never become TOML. Only files are
//! looked at: what comes from a variable or a flag is taken as it is.

use std::collections::BTreeMap;

/// Why a reference could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubstituteError {
    /// The variable is not set and the reference has no default.
    Undefined(String),
    /// The whole value is `$NAME` and that variable is not set: perhaps it is no name at all.
    UndefinedBare(String),
    /// `${` without `}`, or something that is no name between them.
    Malformed,
}

/// Replaces `${NAME}` and `${NAME:-default}`; the default also counts for an empty variable.
///
/// `$${` stands for a literal `${`. A value that is exactly `$NAME` in capitals is a reference
/// too, because files written for the original agent use it; every other `$` means itself.
pub(super) fn substitute(
    text: &str,
    env: &BTreeMap<String, String>,
) -> Result<String, SubstituteError> {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_bare_name(name)) {
        let undefined = || SubstituteError::UndefinedBare(name.to_owned());
        return env.get(name).cloned().ok_or_else(undefined);
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = rest.split_at(start);
        let body = &reference["${".len()..];
        if let Some(before) = before.strip_suffix('$') {
            result.push_str(before);
            result.push_str("${");
            rest = body;
            continue;
        }
        let (inside, after) = body.split_once('}').ok_or(SubstituteError::Malformed)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(SubstituteError::Malformed);
        }
        result.push_str(before);
        result.push_str(&resolve(name, default, env)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn resolve(
    name: &str,
    default: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<String, SubstituteError> {
    match (env.get(name), default) {
        (Some(value), None) => Ok(value.clone()),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value.clone()),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(SubstituteError::Undefined(name.to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_bare_name(name: &str) -> bool {
    is_name(name) && !name.contains(|c: char| c.is_ascii_lowercase())
}
