//! Which sentinels can be applied at all.

use super::{DesiredSentinel, GOSSIP_SUFFIX, SentinelInput};
use crate::ids::ObjectKey;
use crate::invalid::Invalid;
use crate::kinds::{Rules, validation};
use crate::labels;
use crate::origin::Origin;

/// Longest name: with [`GOSSIP_SUFFIX`] it must still be a DNS label (D20).
const LONGEST_NAME: usize = 52;

/// Turns a message into a sentinel, or says why it can never be one.
pub fn validate(input: SentinelInput, rules: &Rules) -> Result<DesiredSentinel, Invalid> {
    validation::required([
        ("workspace_id", &*input.workspace_id),
        ("project_id", &input.project_id),
        ("environment_id", &input.environment_id),
        ("sentinel_id", &input.sentinel_id),
        ("k8s_name", &input.k8s_name),
        ("image", &input.image),
    ])?;
    let key = validate_delete(&input.k8s_name)?;
    service_name(&input.k8s_name)?;
    let label = |field, value: String| validation::label_value(field, value).map(Into::into);
    Ok(DesiredSentinel {
        key,
        workspace_id: label("workspace_id", input.workspace_id)?,
        project_id: label("project_id", input.project_id)?,
        app_id: label("app_id", input.app_id)?,
        environment_id: label("environment_id", input.environment_id)?,
        sentinel_id: label("sentinel_id", input.sentinel_id)?,
        image: validation::image(input.image)?,
        replicas: validation::replicas(input.replicas, rules)?,
        cpu_millicores: validation::cpu_millicores(input.cpu_millicores)?,
        memory_mib: validation::memory_mib(input.memory_mib)?,
        origin: Origin::ControlPlane,
    })
}

/// A Service has the same name, and begins with a letter.
fn service_name(name: &str) -> Result<(), Invalid> {
    if name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(Invalid::new(
        "k8s_name",
        format!("{} begins with no letter", validation::quoted(name)),
        "begin with a letter of a-z: its Service has the same name",
    ))
}

/// The object a delete state names, or why it names none.
pub fn validate_delete(name: &str) -> Result<ObjectKey, Invalid> {
    validation::dns_label("k8s_name", name)?;
    let refused = |problem: String, remedy: &str| Err(Invalid::new("k8s_name", problem, remedy));
    if name.len() > LONGEST_NAME {
        return refused(
            format!("{} has {} characters", validation::quoted(name), name.len()),
            "use at most 52: its gossip objects add to the name",
        );
    }
    if name.ends_with(GOSSIP_SUFFIX) {
        return refused(
            format!("{} ends as gossip objects do", validation::quoted(name)),
            "use a name that does not end in -gossip-lan",
        );
    }
    Ok(ObjectKey::new(labels::SENTINEL_NAMESPACE, name))
}
