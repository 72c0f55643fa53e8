//! The rights krane needs, out of the one list that the chart renders too.

use krane_settings::{ReplaceOutdatedPods, Settings};
use serde::Deserialize;

use super::findings::{Finding, Group, MISSING_RIGHT};

/// The list, as it is in the chart.
const RIGHTS: &str = include_str!("../../charts/krane/files/rbac.yaml");
/// What the list calls krane's own namespace.
const OWN_NAMESPACE: &str = "krane";
const SWITCH: &str = "krane.unkey.com/rbac-switch";

/// One thing that somebody may do or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Right {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural of the kind.
    pub resource: String,
    /// What is done.
    pub verb: String,
    /// The only object it is for.
    pub name: Option<String>,
    /// The only namespace it is for.
    pub namespace: Option<String>,
}

/// One right, and whether it is there; the text says why nobody knows.
pub(super) type Asked = (Right, Result<bool, String>);

#[derive(Deserialize)]
struct Document {
    kind: String,
    metadata: DocumentMetadata,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct DocumentMetadata {
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// The rights that these settings need, for a krane in this namespace.
pub(super) fn needed(settings: &Settings, namespace: &str) -> Vec<Right> {
    let replaces = settings.deployments.replace_outdated_pods == ReplaceOutdatedPods::Unready;
    let is_on = |switch: &str| match switch {
        "vault" => settings.vault.is_some(),
        "registry" => settings.registry.is_some(),
        "replace-outdated-pods" => replaces,
        "lease" => settings.lease.enabled,
        _ => true,
    };
    let mut rights = Vec::new();
    for document in documents() {
        let switch = document.metadata.labels.get(SWITCH);
        if !is_on(switch.map_or("core", String::as_str)) {
            continue;
        }
        let place = document.metadata.namespace.map(|found| {
            if found == OWN_NAMESPACE {
                namespace.to_owned()
            } else {
                found
            }
        });
        let place = place.filter(|_| document.kind == "Role");
        for rule in document.rules {
            rights.extend(rule.rights(place.as_ref()));
        }
    }
    rights
}

#[expect(clippy::expect_used, reason = "a test reads the same text")]
fn documents() -> Vec<Document> {
    serde_saphyr::from_multiple(RIGHTS).expect("the chart's list of rights must be YAML")
}

impl Rule {
    fn rights(&self, namespace: Option<&String>) -> Vec<Right> {
        let names: Vec<Option<String>> = if self.resource_names.is_empty() {
            vec![None]
        } else {
            self.resource_names.iter().cloned().map(Some).collect()
        };
        let mut rights = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for name in &names {
                    rights.extend(self.verbs.iter().map(|verb| Right {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                        namespace: namespace.cloned(),
                    }));
                }
            }
        }
        rights
    }
}

/// Rights that krane does not need, and that would make it worth stealing.
pub(super) fn too_wide() -> Vec<Right> {
    let right = |group: &str, resource: &str, verb: &str| Right {
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb: verb.to_owned(),
        ..Right::default()
    };
    vec![
        right("*", "*", "*"),
        right("", "secrets", "get"),
        right("", "secrets", "list"),
        right("", "pods/exec", "create"),
        right("rbac.authorization.k8s.io", "clusterrolebindings", "create"),
    ]
}

impl Right {
    /// What it is about: `replicasets.apps`, `deployments.apps in sentinel`.
    pub(super) fn subject(&self) -> String {
        let mut text = self.resource.clone();
        if !self.group.is_empty() {
            text = format!("{text}.{}", self.group);
        }
        if let Some(name) = &self.name {
            text = format!("{text}/{name}");
        }
        match &self.namespace {
            Some(namespace) => format!("{text} in {namespace}"),
            None => text,
        }
    }
}

/// A line for each thing that something is missing for, one for all that nobody knows, or one that
/// says that all is there.
pub(super) fn judge(asked: &[Asked], user: &str) -> Vec<Finding> {
    let (group, check) = (Group::Rights, "rights");
    let mut subjects: Vec<String> = asked.iter().map(|(right, _)| right.subject()).collect();
    subjects.dedup();
    let mut findings = Vec::new();
    for subject in subjects {
        let missing: Vec<&str> = asked
            .iter()
            .filter(|(right, is_there)| right.subject() == subject && *is_there == Ok(false))
            .map(|(right, _)| right.verb.as_str())
            .collect();
        if !missing.is_empty() {
            let verbs = missing.join(", ");
            let message = format!("{subject}: {verbs} is not allowed");
            findings.push(
                Finding::fail(group, check, MISSING_RIGHT, message)
                    .because(format!("no role gives it to {user}"))
                    .fix("helm upgrade with rbac.create=true, or bind the roles of charts/krane/files/rbac.yaml"),
            );
        }
    }
    let unknown = asked.iter().filter_map(|(_, answer)| answer.as_ref().err());
    let unknown: Vec<&String> = unknown.collect();
    if let Some(why) = unknown.first() {
        let message = format!(
            "whether {user} has {} of {} rights that krane needs is not known",
            unknown.len(),
            asked.len()
        );
        findings.push(Finding::unknown(group, check, message).because(*why));
    }
    if findings.is_empty() {
        let message = format!("all {} rights that krane needs, as {user}", asked.len());
        findings.push(Finding::pass(group, check, message));
    }
    findings
}

/// What a stolen token could do beyond krane's work; only of an account of a program.
pub(super) fn judge_width(asked: &[Asked], user: &str) -> Option<Finding> {
    let is_program = user.starts_with("system:serviceaccount:");
    let check = "rights.width";
    let wide: Vec<String> = asked
        .iter()
        .filter(|(_, is_there)| *is_there == Ok(true))
        .map(|(right, _)| format!("{} {}", right.verb, right.subject()))
        .collect();
    let unknown = asked.iter().find_map(|(_, answer)| answer.as_ref().err());
    if let (true, true, Some(why)) = (is_program, wide.is_empty(), unknown) {
        return Some(Finding::unseen(Group::Rights, check, why));
    }
    (is_program && !wide.is_empty()).then(|| {
        let message = format!("{user} may do more than krane needs: {}", wide.join(", "));
        Finding::warn(Group::Rights, check, "krane::check::wide_rights", message)
            .because("some other role is bound to krane's account")
            .fix("give krane an account of its own, with the roles of the chart alone")
    })
}

#[cfg(test)]
mod tests;
