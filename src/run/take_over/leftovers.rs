//! What agents before krane made and krane has no use for. It deletes none of it: a pod may still
//! read a Secret, and only a person knows.

use std::collections::BTreeSet;

use krane_domain::labels;
use krane_kubernetes::{MetadataLister, ObjectMetadata};

use super::{Findings, Leftover};

/// What `deploy-…` objects held.
const PLAIN: &str = "the workload's secrets in plain text; krane keeps none in Kubernetes, so it \
                     can go when no pod reads it any more";
const ACCOUNT: &str = "the account that read those secrets; it can go when no pod runs under it";
const POLICY: &str = "the one isolation policy of the namespace; krane's own, one per environment, \
                      stand beside it and add up, so it can go once they are there";
const FRONTLINE: &str = "let in another proxy than sentinels; it can go if that is gone";
const BUDGET: &str = "a disruption budget of a workload; krane makes none";
const GOSSIP: &str = "gossip of a sentinel that is gone";

pub(super) async fn find(lister: &MetadataLister, findings: &mut Findings) {
    let ours = format!("{}={}", labels::MANAGED_BY, labels::MANAGER);
    let deploy = format!("{ours},{}", labels::DEPLOYMENT_ID);
    for (resource, kind, why) in [
        ("secrets", "Secret", PLAIN),
        ("serviceaccounts", "ServiceAccount", ACCOUNT),
    ] {
        let all = list(lister, "/api/v1", resource, &deploy, findings).await;
        let made = all.iter().filter(|found| found.name.starts_with("deploy-"));
        findings
            .leftovers
            .extend(made.map(|found| leftover(found, resource, kind, why)));
    }

    let budgets = "poddisruptionbudgets";
    for found in list(lister, "/apis/policy/v1", budgets, &ours, findings).await {
        if found.namespace != labels::SENTINEL_NAMESPACE {
            let kind = "PodDisruptionBudget";
            findings
                .leftovers
                .push(leftover(&found, budgets, kind, BUDGET));
        }
    }

    let sentinels = format!("{}={}", labels::COMPONENT, labels::COMPONENT_SENTINEL);
    let deployments = list(lister, "/apis/apps/v1", "deployments", &sentinels, findings).await;
    let sentinels: BTreeSet<String> = deployments.into_iter().map(|found| found.name).collect();
    let is_orphan = |found: &ObjectMetadata| {
        let sentinel = found.name.strip_suffix("-gossip-lan");
        found.namespace == labels::SENTINEL_NAMESPACE
            && sentinel.is_some_and(|sentinel| !sentinels.contains(sentinel))
            && !found.is_ours()
    };
    let gossip = format!("{}=gossip-lan", labels::COMPONENT);
    for found in list(lister, "/api/v1", "services", &gossip, findings).await {
        if is_orphan(&found) {
            findings
                .leftovers
                .push(leftover(&found, "services", "Service", GOSSIP));
        }
    }
    let policies = "ciliumnetworkpolicies";
    for found in list(lister, "/apis/cilium.io/v2", policies, "", findings).await {
        let is_frontline = found.name.ends_with("-frontline-ingress")
            && found.labels.get(labels::COMPONENT).map(String::as_str)
                == Some(labels::COMPONENT_POLICY)
            && !found.labels.contains_key(labels::NETWORK_POLICY_ID);
        let why = if found.name == "allow-sentinel-ingress" && !found.is_ours() {
            POLICY
        } else if is_frontline {
            FRONTLINE
        } else if is_orphan(&found) {
            GOSSIP
        } else {
            continue;
        };
        let kind = "CiliumNetworkPolicy";
        findings
            .leftovers
            .push(leftover(&found, policies, kind, why));
    }
}

async fn list(
    lister: &MetadataLister,
    api: &str,
    resource: &'static str,
    selector: &str,
    findings: &mut Findings,
) -> Vec<ObjectMetadata> {
    match lister.list(api, resource, selector).await {
        Ok(found) => found,
        Err(refusal) if refusal.class == krane_domain::refusal::RefusalClass::KindMissing => {
            Vec::new()
        }
        Err(refusal) => {
            let problem = format!("{resource} cannot be looked at: {refusal}");
            findings.problems.push(problem);
            Vec::new()
        }
    }
}

fn leftover(found: &ObjectMetadata, resource: &str, kind: &str, why: &'static str) -> Leftover {
    let ObjectMetadata {
        namespace, name, ..
    } = found;
    Leftover {
        object: format!("{kind} {namespace}/{name}"),
        why,
        command: format!("kubectl -n {namespace} delete {resource} {name}"),
    }
}
