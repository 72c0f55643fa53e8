//! Names, label values and image references.

use crate::invalid::Invalid;
use crate::kinds::Rules;

/// Longest DNS-1123 label and longest label value.
const MAX_LENGTH: usize = 63;

/// Longest DNS-1123 subdomain.
const MAX_SUBDOMAIN: usize = 253;

/// Longest image reference, far above what registries allow.
const MAX_IMAGE_LENGTH: usize = 1024;

/// A DNS-1123 label: what a namespace, and the host name of a pod, may be called.
///
/// Kubernetes would take a longer name with dots for a ReplicaSet, but pods derive from it.
pub(in crate::kinds) fn dns_label(field: &str, name: &str) -> Result<(), Invalid> {
    if name.len() <= MAX_LENGTH && is_label(name) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("{} is no DNS label", quoted(name)),
        "use at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit",
    ))
}

fn is_label(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// A DNS-1123 subdomain: what an object without pods may be called.
pub(in crate::kinds) fn dns_subdomain(field: &str, name: &str) -> Result<(), Invalid> {
    if name.len() <= MAX_SUBDOMAIN && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("{} is no DNS subdomain", quoted(name)),
        "use at most 253 of a-z, 0-9, - and ., every part beginning and ending with a letter or digit",
    ))
}

/// Fields that may not be empty.
pub(in crate::kinds) fn required<'a>(
    fields: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> Result<(), Invalid> {
    for (field, value) in fields {
        if value.trim().is_empty() {
            return Err(Invalid::new(field, "is empty", "send a value"));
        }
    }
    Ok(())
}

/// A namespace that the control plane may write into (D15): none of the cluster, not krane's own.
pub(in crate::kinds) fn workload_namespace(namespace: &str, rules: &Rules) -> Result<(), Invalid> {
    dns_label("k8s_namespace", namespace)?;
    if namespace.starts_with("kube-")
        || namespace == "default"
        || namespace == &*rules.namespace_of_krane
    {
        return Err(Invalid::new(
            "k8s_namespace",
            format!("\"{namespace}\" is reserved for the cluster and for krane"),
            "use a namespace of the workspace",
        ));
    }
    Ok(())
}

/// A value that labels may have; empty is one.
pub(in crate::kinds) fn label_value(field: &str, value: String) -> Result<String, Invalid> {
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
pub(in crate::kinds) fn image(image: String) -> Result<String, Invalid> {
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
pub(in crate::kinds) fn quoted(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(80).collect();
    let more = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    format!("\"{}{more}\"", start.escape_debug())
}
