//! Asks the API server. Reads only: a review is a question, though it is sent as a POST.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use krane_domain::labels;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_kubernetes::{
    Call, CallLimits, CallTimeouts, KubeCalls, KubeConnection, MetadataLister, Reply, Verb,
};
use krane_settings::Settings;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::{FORBIDDEN, Facts, Greeting, Presence};
use crate::preflight::STEP;
use crate::preflight::rights::{self, Asked, Right};
use crate::run::take_over;

const JSON: &str = "application/json";
/// Questions about rights in flight.
const AT_ONCE: usize = 16;

fn timeouts() -> CallTimeouts {
    CallTimeouts::fixed(STEP)
}

fn calls(connection: &Arc<KubeConnection>) -> KubeCalls {
    KubeCalls::new(Arc::clone(connection), CallLimits::default(), timeouts())
}

/// Asks for the version.
pub(in crate::preflight) async fn greet(connection: &Arc<KubeConnection>) -> Greeting {
    let call = Call::new(Verb::Get, "version", "/version".to_owned());
    let reply = calls(connection).run(&call).await;
    let is_refused = match &reply {
        Ok(reply) => matches!(reply.code, 401 | 403),
        Err(refusal) => refusal.class == RefusalClass::Unauthenticated,
    };
    let date = reply.as_ref().ok().and_then(|reply| reply.date.clone());
    let version = match reply {
        Ok(reply) if reply.is_success() => version(&reply),
        Ok(reply) => Err(reply.refusal().to_string()),
        Err(refusal) => Err(refusal.to_string()),
    };
    Greeting {
        host: connection.host().to_owned(),
        version,
        is_refused,
        date,
    }
}

fn version(reply: &Reply) -> Result<((u32, u32), String), String> {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    // A provider may add to it: `33+`.
    let number = |field: &str| {
        let text = body[field].as_str()?;
        text.trim_end_matches(|letter: char| !letter.is_ascii_digit())
            .parse()
            .ok()
    };
    let version = number("major").zip(number("minor"));
    let version = version.ok_or_else(|| "its answer names no version of Kubernetes".to_owned())?;
    let text = body["gitVersion"].as_str().unwrap_or_default();
    Ok((version, format!("Kubernetes {text}")))
}

/// Looks at everything, at once.
pub(in crate::preflight) async fn look(
    connection: &Arc<KubeConnection>,
    settings: &Settings,
) -> Facts {
    let calls = calls(connection);
    let class = format!(
        "/apis/storage.k8s.io/v1/storageclasses/{}",
        settings.storage_class_name
    );
    let needed = rights::needed(settings, connection.namespace());
    let lister = MetadataLister::new(Arc::clone(connection), CallLimits::default(), timeouts());
    let (user, needed, wide, gvisor, cilium, sentinels, storage_class, pull_secrets, singles, left) = tokio::join!(
        user(&calls),
        ask_all(&calls, needed),
        ask_all(&calls, rights::too_wide()),
        presence(&calls, "/apis/node.k8s.io/v1/runtimeclasses/gvisor"),
        cilium(&calls),
        presence(&calls, "/api/v1/namespaces/sentinel"),
        presence(&calls, &class),
        pull_secrets(&lister, settings.registry.is_none()),
        single_sentinels(&calls),
        leftovers(&lister),
    );
    Facts {
        user,
        needed,
        wide,
        gvisor,
        cilium,
        sentinels,
        storage_class,
        pull_secrets,
        single_sentinels: singles,
        leftovers: left,
    }
}

/// Sends a review and reads it back.
async fn review(
    calls: &KubeCalls,
    resource: &'static str,
    path: &str,
    body: &Value,
) -> Result<Value, String> {
    let call = Call::new(Verb::Create, resource, path.to_owned())
        .with_body(JSON, Bytes::from(body.to_string()));
    let reply = calls.run(&call).await.map_err(|refusal| words(&refusal))?;
    if reply.is_success() {
        serde_json::from_slice(&reply.body).map_err(|_| format!("a {resource} answer is no JSON"))
    } else {
        Err(words(&reply.refusal()))
    }
}

async fn user(calls: &KubeCalls) -> String {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = review(calls, "selfsubjectreviews", path, &body).await;
    let name = answer.ok().and_then(|answer| {
        let name = &answer["status"]["userInfo"]["username"];
        name.as_str().map(str::to_owned)
    });
    name.unwrap_or_else(|| "this account".to_owned())
}

/// Asks about each. What has no answer when the time is over takes none from the others.
async fn ask_all(calls: &KubeCalls, rights: Vec<Right>) -> Vec<Asked> {
    let end = Instant::now() + STEP;
    let asked = rights.into_iter().map(|right| async move {
        let answer = timeout_at(end, ask(calls, &right)).await;
        (right, answer.unwrap_or_else(|_| Err(too_late())))
    });
    futures::stream::iter(asked)
        .buffered(AT_ONCE)
        .collect()
        .await
}

async fn ask(calls: &KubeCalls, right: &Right) -> Result<bool, String> {
    let (resource, subresource) = right
        .resource
        .split_once('/')
        .unwrap_or((&right.resource, ""));
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "verb": right.verb,
            "name": right.name.as_deref().unwrap_or_default(),
            "namespace": right.namespace.as_deref().unwrap_or_default(),
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = review(calls, "selfsubjectaccessreviews", path, &body).await?;
    let allowed = answer["status"]["allowed"].as_bool();
    allowed.ok_or_else(|| "the API server says neither yes nor no".to_owned())
}

async fn presence(calls: &KubeCalls, path: &str) -> Presence {
    match get(calls, path).await {
        Ok(reply) if reply.is_success() => Presence::There,
        Ok(reply) if reply.code == 404 => Presence::Absent,
        Ok(reply) => unknown(&reply.refusal()),
        Err(refusal) => unknown(&refusal),
    }
}

fn unknown(refusal: &Refusal) -> Presence {
    if refusal.code == 403 {
        Presence::Forbidden
    } else {
        Presence::Unknown(refusal.to_string())
    }
}

async fn get(calls: &KubeCalls, path: &str) -> Result<Reply, Refusal> {
    calls
        .run(&Call::new(Verb::Get, "check", path.to_owned()))
        .await
}

async fn cilium(calls: &KubeCalls) -> Presence {
    match get(calls, "/apis/cilium.io/v2").await {
        Ok(reply) if reply.is_success() => {
            let found: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let mut kinds = found["resources"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["name"] == "ciliumnetworkpolicies") {
                Presence::There
            } else {
                Presence::Absent
            }
        }
        Ok(reply) if reply.code == 404 => Presence::Absent,
        Ok(reply) => unknown(&reply.refusal()),
        Err(refusal) => unknown(&refusal),
    }
}

async fn pull_secrets(
    lister: &MetadataLister,
    is_registry_unset: bool,
) -> Option<Result<Vec<String>, String>> {
    if !is_registry_unset {
        return None;
    }
    let ours = format!("{}={}", labels::MANAGED_BY, labels::MANAGER);
    let all = timeout(STEP, lister.list("/api/v1", "secrets", &ours));
    let Ok(found) = all.await else {
        return Some(Err(too_late()));
    };
    let found = found.map_err(|refusal| words(&refusal)).map(|found| {
        let left = found
            .into_iter()
            .filter(|found| found.name == labels::PULL_SECRET_NAME);
        left.map(|found| found.namespace).collect()
    });
    Some(found)
}

async fn single_sentinels(calls: &KubeCalls) -> Result<Vec<String>, String> {
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments?limit=500&labelSelector={}%3D{}",
        labels::SENTINEL_NAMESPACE,
        labels::MANAGED_BY.replace('/', "%2F"),
        labels::MANAGER,
    );
    let reply = get(calls, &path).await.map_err(|refusal| words(&refusal))?;
    if !reply.is_success() {
        return Err(words(&reply.refusal()));
    }
    let listed: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let items = listed["items"].as_array().into_iter().flatten();
    let is_single = |item: &&Value| item["spec"]["replicas"].as_i64() == Some(1);
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    Ok(items.filter(is_single).filter_map(name).collect())
}

async fn leftovers(lister: &MetadataLister) -> Result<usize, String> {
    let found = timeout(STEP, take_over::left_by_others(lister));
    let found = found.await.map_err(|_| too_late())?;
    match found.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(found.leftovers.len()),
    }
}

fn too_late() -> String {
    format!("it took longer than {STEP:?}")
}

/// A right that krane itself does not need is no reason to alarm anyone.
fn words(refusal: &Refusal) -> String {
    if refusal.code == 403 {
        FORBIDDEN.to_owned()
    } else {
        refusal.to_string()
    }
}
