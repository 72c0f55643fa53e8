//! Names, label values and image references.

use crate::desired::Invalid;

/// Longest DNS-1123 label and longest label value.
const MAX_LENGTH: usize = 63;

/// Longest image reference, far above what registries allow.
const MAX_IMAGE_LENGTH: usize = 1024;

/// A DNS-1123 label: what a namespace, and the host name of a pod, may be called.
///
/// Kubernetes would take a longer name with dots for a ReplicaSet, but pods derive from it.
pub(super) fn dns_label(field: &str, name: &str) -> Result<(), Invalid> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_legal = !name.is_empty()
        && name.len() <= MAX_LENGTH
        && name.chars().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_legal {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("{} is no DNS label", quoted(name)),
        "use at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit",
    ))
}

/// A value that labels may have; empty is one.
pub(super) fn label_value(field: &str, value: String) -> Result<String, Invalid> {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_legal = value.len() <= MAX_LENGTH
        && value
            .chars()
            .all(|c| is_end(c) || matches!(c, '-' | '_' | '.'))
        && value.chars().next().is_none_or(is_end)
        && value.chars().next_back().is_none_or(is_end);
    if is_legal {
        return Ok(value);
    }
    Err(Invalid::new(
        field,
        format!("{} cannot be the value of a label", quoted(&value)),
        "use at most 63 of A-Z, a-z, 0-9, -, _ and ., beginning and ending with a letter or digit",
    ))
}

/// Something that can be an image reference. Whether it is one, the kubelet finds out.
pub(super) fn image(image: String) -> Result<String, Invalid> {
    let is_inner = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '+' | '[' | ']')
    };
    let is_legal = image.len() <= MAX_IMAGE_LENGTH
        && image.chars().all(is_inner)
        && image.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && image.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if is_legal {
        return Ok(image);
    }
    Err(Invalid::new(
        "image",
        format!("{} is no image reference", quoted(&image)),
        "send registry/repository:tag or registry/repository@digest",
    ))
}

/// A text of the control plane, safe and short enough for a message.
pub(super) fn quoted(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(80).collect();
    let more = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    format!("\"{}{more}\"", start.escape_debug())
}
