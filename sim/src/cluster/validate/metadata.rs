//! Names, labels and annotations.

use serde_json::Value;

use crate::cluster::refusals::Broken;

const LARGEST_ANNOTATIONS: usize = 256 << 10;

/// What is wrong with an object's metadata.
pub(super) fn broken(object: &Value, is_namespace: bool) -> Vec<Broken> {
    let metadata = &object["metadata"];
    let mut broken = Vec::new();
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        broken.push(Broken::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if !is_subdomain(name, if is_namespace { 63 } else { 253 }) {
        let text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                    characters, '-' or '.', and must start and end with an alphanumeric character";
        broken.push(Broken::invalid("metadata.name", &metadata["name"], text));
    }
    labels("metadata.labels", &metadata["labels"], &mut broken);
    let annotations = metadata["annotations"].as_object();
    let size: usize = annotations
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > LARGEST_ANNOTATIONS {
        let text = format!("may not be more than {LARGEST_ANNOTATIONS} bytes");
        broken.push(Broken::too_long("metadata.annotations", &text));
    }
    let owners = metadata["ownerReferences"].as_array();
    let mut controllers = 0;
    for owner in owners.into_iter().flatten() {
        if owner["uid"].as_str().unwrap_or_default().is_empty() {
            let text = "uid must not be empty";
            broken.push(Broken::invalid(
                "metadata.ownerReferences.uid",
                &owner["uid"],
                text,
            ));
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let text = "Only one reference can have Controller set to true";
        broken.push(Broken::invalid(
            "metadata.ownerReferences",
            &Value::Null,
            text,
        ));
    }
    broken
}

/// What is wrong with labels.
pub(super) fn labels(field: &str, labels: &Value, broken: &mut Vec<Broken>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        let (prefix, name) = key.split_once('/').unwrap_or(("a", key));
        if !is_qualified(name) || !is_subdomain(prefix, 253) {
            let text = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
                        must start and end with an alphanumeric character";
            broken.push(Broken::invalid(field, &Value::from(&**key), text));
        }
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() && !is_qualified(text) {
            let text = "a valid label must be an empty string or consist of alphanumeric \
                        characters, '-', '_' or '.', and must start and end with an alphanumeric \
                        character";
            broken.push(Broken::invalid(field, value, text));
        }
    }
}

fn is_qualified(name: &str) -> bool {
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= 63
        && name
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
        && ends
            .into_iter()
            .all(|c| c.is_some_and(|c| c.is_ascii_alphanumeric()))
}

fn is_subdomain(name: &str, longest: usize) -> bool {
    let is_alphanumeric = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    !name.is_empty()
        && name.len() <= longest
        && name
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'.')
        && name.split('.').all(|part| {
            is_alphanumeric(part.bytes().next()) && is_alphanumeric(part.bytes().last())
        })
}
