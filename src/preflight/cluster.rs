//! What the API server says about the cluster, and what it means. `look` asks, the rest is pure.

mod look;

use super::findings::{Finding, Group, MISSING_RIGHT};
use super::rights::{self, Asked};

pub(super) use look::{greet, look};

/// The oldest Kubernetes that krane runs on.
const OLDEST: (u32, u32) = (1, 33);
/// Names that a line shows at most.
const SHOWN: usize = 5;

/// Whether something is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is.
    There,
    /// It is not.
    Absent,
    /// This account may not look.
    Forbidden,
    /// Nobody knows, and why.
    Unknown(String),
}

/// Why something was not seen.
const FORBIDDEN: &str = "this account may not read it";

/// The first words with an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    /// Host and port.
    pub host: String,
    /// `major` and `minor` of its version, and the whole text.
    pub version: Result<((u32, u32), String), String>,
    /// Whether it took the credentials.
    pub is_refused: bool,
    /// The header `Date`.
    pub date: Option<String>,
}

/// What is there.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Whose rights these are.
    pub user: String,
    /// The rights that krane needs.
    pub needed: Vec<Asked>,
    /// Those that it does not need.
    pub wide: Vec<Asked>,
    /// The RuntimeClass `gvisor`.
    pub gvisor: Presence,
    /// The kind CiliumNetworkPolicy.
    pub cilium: Presence,
    /// The namespace of sentinels.
    pub sentinels: Presence,
    /// The storage class of the settings.
    pub storage_class: Presence,
    /// Namespaces with a pull secret though no registry is set; `None` when one is.
    pub pull_secrets: Option<Result<Vec<String>, String>>,
    /// Sentinels with at most one replica.
    pub single_sentinels: Result<Vec<String>, String>,
    /// How much other agents left.
    pub leftovers: Result<usize, String>,
}

/// What of the settings the judgement depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// `cilium.required`
    pub is_cilium_required: bool,
    /// `storage_class_name`
    pub storage_class: &'a str,
}

/// Whether the API server answers, and is new enough.
pub(super) fn judge_greeting(greeting: &Greeting) -> Finding {
    let (group, check) = (Group::KubernetesApi, "kubernetes.api");
    let host = &greeting.host;
    match &greeting.version {
        Err(why) if greeting.is_refused => Finding::fail(
            group,
            check,
            "krane::check::credentials",
            format!("the API server {host} refuses the credentials"),
        )
        .because(why)
        .fix("check the ServiceAccount's token, or give --kubeconfig and --context"),
        Err(why) => Finding::fail(
            group,
            check,
            "krane::check::api_server",
            format!("the API server {host} gave no usable answer"),
        )
        .because(why)
        .fix(way_to_api_server(why)),
        Ok((version, text)) if *version < OLDEST => Finding::fail(
            group,
            check,
            "krane::check::version",
            format!("the API server {host} is {text}"),
        )
        .because(format!("krane needs {}.{} or newer", OLDEST.0, OLDEST.1))
        .fix("upgrade the cluster"),
        Ok((_, text)) => Finding::pass(group, check, format!("the API server {host} is {text}")),
    }
}

/// Everything behind the API server.
pub(super) fn judge(facts: &Facts, wanted: Wanted<'_>) -> Vec<Finding> {
    let mut findings = rights::judge(&facts.needed, &facts.user);
    findings.extend(rights::judge_width(&facts.wide, &facts.user));
    findings.push(gvisor(&facts.gvisor));
    findings.push(cilium(&facts.cilium, wanted.is_cilium_required));
    findings.push(sentinels(&facts.sentinels));
    findings.push(storage_class(&facts.storage_class, wanted.storage_class));
    findings.extend(facts.pull_secrets.as_ref().map(pull_secrets));
    findings.push(single_sentinels(&facts.single_sentinels));
    findings.push(leftovers(&facts.leftovers));
    findings
}

/// What cannot be looked at without the API server.
pub(super) fn nothing(because: &str) -> Vec<Finding> {
    let cluster = [
        "cluster.gvisor",
        "cluster.cilium",
        "cluster.sentinel_namespace",
        "cluster.storage_class",
    ];
    let mut findings = vec![Finding::skip(Group::Rights, "rights", because)];
    findings.extend(cluster.map(|check| Finding::skip(Group::Cluster, check, because)));
    findings
}

/// What krane needs, and nobody knows of.
fn unknown(check: &'static str, what: &str, why: &str) -> Finding {
    let message = format!("whether {what} is there is not known");
    Finding::unknown(Group::Cluster, check, message).because(why)
}

/// What krane needs and has a right to read, read with an account that has none.
fn forbidden(check: &'static str, what: &str) -> Finding {
    let message = format!("whether {what} is there is not known");
    Finding::fail(Group::Cluster, check, MISSING_RIGHT, message)
        .because(FORBIDDEN)
        .fix("run it with krane's own account, with the roles of the chart")
}

fn gvisor(presence: &Presence) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.gvisor");
    match presence {
        Presence::There => Finding::pass(group, check, "the RuntimeClass gvisor is there"),
        Presence::Forbidden => forbidden(check, "the RuntimeClass gvisor"),
        Presence::Unknown(why) => unknown(check, "the RuntimeClass gvisor", why),
        Presence::Absent => Finding::fail(
            group,
            check,
            "krane::check::gvisor",
            "there is no RuntimeClass gvisor",
        )
        .because("every pod of a workload names it, and is refused without it")
        .fix("install gVisor on the nodes and create the RuntimeClass gvisor"),
    }
}

fn cilium(presence: &Presence, is_required: bool) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.cilium");
    let code = "krane::check::cilium";
    let kind = "the kind CiliumNetworkPolicy";
    let absent = "the cluster does not know CiliumNetworkPolicy (cilium.io/v2)";
    match presence {
        Presence::There => Finding::pass(group, check, "CiliumNetworkPolicy is known"),
        Presence::Forbidden if is_required => forbidden(check, kind),
        Presence::Unknown(why) if is_required => unknown(check, kind, why),
        Presence::Forbidden => Finding::skip(group, check, FORBIDDEN),
        Presence::Unknown(why) => Finding::unseen(group, check, why),
        Presence::Absent if is_required => Finding::fail(group, check, code, absent)
            .because("workloads wait until it does (cilium.required)")
            .fix("install Cilium, or set cilium.required=false to run workloads unisolated"),
        Presence::Absent => Finding::warn(group, check, code, absent)
            .because("cilium.required=false: workloads run without network isolation")
            .fix("install Cilium where that matters"),
    }
}

/// What to look at when no usable answer came, by the words of what did.
fn way_to_api_server(why: &str) -> &'static str {
    let why = why.to_lowercase();
    if why.contains("certificate") {
        "check `server` and the certificate authority of the kubeconfig (in a pod: ca.crt beside the token), and \
         whether a proxy answers in its place"
    } else if why.contains("refused") {
        "check that it is up, and the address and port of `server` in the kubeconfig"
    } else {
        "check `server` in the kubeconfig, and what lies between: a proxy, a firewall, in a pod network policies"
    }
}

fn sentinels(presence: &Presence) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.sentinel_namespace");
    match presence {
        Presence::There => Finding::pass(group, check, "the namespace sentinel is there"),
        Presence::Forbidden => forbidden(check, "the namespace sentinel"),
        Presence::Unknown(why) => unknown(check, "the namespace sentinel", why),
        Presence::Absent => Finding::fail(
            group,
            check,
            "krane::check::sentinel_namespace",
            "there is no namespace sentinel",
        )
        .because("krane's rights for sentinels are a Role in it, so that it has to be there before krane")
        .fix("kubectl create namespace sentinel"),
    }
}

fn storage_class(presence: &Presence, name: &str) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.storage_class");
    match presence {
        Presence::There => {
            Finding::pass(group, check, format!("the storage class {name} is there"))
        }
        // krane has no right to read it, and needs none.
        Presence::Forbidden => Finding::skip(group, check, FORBIDDEN),
        Presence::Unknown(why) => Finding::unseen(group, check, why),
        Presence::Absent => Finding::warn(
            group,
            check,
            "krane::check::storage_class",
            format!("there is no storage class {name}"),
        )
        .because("pods with an ephemeral volume stay pending; others do not mind")
        .fix("set storage_class_name to one that kubectl get storageclasses shows"),
    }
}

fn pull_secrets(found: &Result<Vec<String>, String>) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.pull_secrets");
    match found {
        Err(why) => Finding::skip(group, check, why),
        Ok(namespaces) if namespaces.is_empty() => {
            Finding::pass(group, check, "no pull secret is left over")
        }
        Ok(namespaces) => Finding::warn(
            group,
            check,
            "krane::check::pull_secrets",
            format!(
                "no registry is set, and pull secrets are left in {}",
                some(namespaces)
            ),
        )
        .because("krane has no right on Secrets without a registry, and deletes none")
        .fix("delete depot-pull-secret there, or set registry.url again"),
    }
}

fn single_sentinels(found: &Result<Vec<String>, String>) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.sentinel_replicas");
    match found {
        Err(why) => Finding::skip(group, check, why),
        Ok(names) if names.is_empty() => {
            Finding::pass(group, check, "no sentinel has only one replica")
        }
        Ok(names) => Finding::warn(
            group,
            check,
            "krane::check::sentinel_replicas",
            format!("{} one replica: {}", have(names.len()), some(names)),
        )
        .because("their disruption budget holds up the drain of a node")
        .fix("want two replicas, or delete the pod by hand when a node is drained"),
    }
}

fn leftovers(found: &Result<usize, String>) -> Finding {
    let (group, check) = (Group::Cluster, "cluster.leftovers");
    match found {
        Err(why) => Finding::skip(group, check, why),
        Ok(0) => Finding::pass(group, check, "nothing is left of another agent"),
        Ok(number) => Finding::warn(
            group,
            check,
            "krane::check::leftovers",
            format!("{number} objects are left of another agent"),
        )
        .because("krane deletes none of them: only a person knows that nobody needs them")
        .fix("krane check --takeover lists them with the commands that delete them"),
    }
}

fn have(sentinels: usize) -> String {
    match sentinels {
        1 => "1 sentinel has".to_owned(),
        many => format!("{many} sentinels have"),
    }
}

fn some(names: &[String]) -> String {
    let mut text = names
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text = format!("{text} and {} more", names.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests;
