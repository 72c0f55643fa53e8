//! What is said of a kind that krane may not list.

use krane_domain::object::Resource;

/// The permission that krane needs to see this kind.
pub(crate) fn permission(resource: Resource) -> String {
    let plural = resource.plural();
    match resource.group() {
        "" => format!("list and watch {plural}"),
        group => format!("list and watch {plural} in API group \"{group}\""),
    }
}

/// One line when a kind becomes unknown.
pub(crate) fn tell_forbidden(controller: &'static str, resource: Resource, text: &str) {
    tracing::error!(
        controller,
        kind = resource.kind(),
        text,
        permission = permission(resource),
        "krane may not list this kind: what needs it is blocked, and nothing of it is written or \
         deleted; krane tries again every 20 s"
    );
}
