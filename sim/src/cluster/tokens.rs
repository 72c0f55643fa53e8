//! ServiceAccount tokens: what the API server hands out, and what it says of one it is shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::object::{Metadata, ObjectRef, Resource};
use krane_domain::refusal::Refusal;
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};
use krane_ports::Identities;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::client::{SimClient, unreadable};
use super::store::Key;
use super::world::World;

/// The audience of the API server itself: that of tokens for which none is asked.
pub const API_AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";
/// How long a token is accepted after its pod began to end.
const AFTERLIFE: Duration = Duration::from_secs(60);

/// Somebody that a token stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Bearer {
    username: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    audiences: Vec<String>,
    expires: Option<Instant>,
    /// The pod it is bound to, with its uid.
    pod: Option<(Key, Arc<str>)>,
}

/// All tokens that were handed out.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    bearers: BTreeMap<String, Bearer>,
}

/// The token API, for tests and for the pods of the demo.
#[derive(Clone)]
pub struct TokenIssuer {
    world: Arc<Mutex<World>>,
}

impl TokenIssuer {
    pub(super) fn new(world: Arc<Mutex<World>>) -> Self {
        Self { world }
    }

    /// A token for a pod that is there, as its volume of projected tokens holds it. Without an
    /// audience it is one for the API server.
    pub fn for_pod(&self, namespace: &str, pod: &str, audiences: &[&str]) -> Option<Secret> {
        let mut world = self.world.lock();
        let key = Key::new("Pod", namespace, pod);
        let live = Arc::clone(world.store.get(&key)?);
        let spec = &live.value()["spec"];
        let account = spec["serviceAccountName"].as_str().unwrap_or("default");
        let mut extra = BTreeMap::from([
            said("pod-name", pod),
            said("pod-uid", live.uid()),
            said("credential-id", &format!("JTI={}", world.uid())),
        ]);
        if let Some(node) = spec["nodeName"].as_str() {
            extra.extend([said("node-name", node)]);
        }
        let bearer = Bearer {
            extra,
            pod: Some((key, live.uid().into())),
            ..account_of(namespace, account)
        };
        Some(issue(&mut world, bearer, audiences))
    }

    /// A token of an account that is bound to nothing, as an old Secret of a token holds it.
    pub fn for_account(&self, namespace: &str, account: &str) -> Secret {
        issue(&mut self.world.lock(), account_of(namespace, account), &[])
    }

    /// A token that stands for anybody else: a node, a person.
    pub fn for_user(&self, username: &str, groups: &[&str]) -> Secret {
        let bearer = Bearer {
            username: username.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..Bearer::default()
        };
        issue(&mut self.world.lock(), bearer, &[])
    }

    /// From now on the token is one that has expired.
    pub fn expire(&self, token: &Secret) {
        let mut world = self.world.lock();
        if let Some(bearer) = world.tokens.bearers.get_mut(token.expose()) {
            bearer.expires = Some(Instant::now());
        }
    }
}

fn issue(world: &mut World, bearer: Bearer, audiences: &[&str]) -> Secret {
    let token = format!("sim.{}.{}", world.uid(), world.uid());
    let audiences = match audiences {
        [] => vec![API_AUDIENCE.to_owned()],
        audiences => audiences.iter().map(|&each| each.to_owned()).collect(),
    };
    let bearer = Bearer {
        audiences,
        ..bearer
    };
    world.tokens.bearers.insert(token.clone(), bearer);
    Secret::new(token)
}

fn account_of(namespace: &str, account: &str) -> Bearer {
    Bearer {
        username: format!("system:serviceaccount:{namespace}:{account}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        ..Bearer::default()
    }
}

fn said(key: &str, value: &str) -> (String, Vec<String>) {
    (
        format!("authentication.kubernetes.io/{key}"),
        vec![value.to_owned()],
    )
}

/// What the API server says of a token.
fn review(world: &World, token: &str, audience: Option<&str>) -> Review {
    let refused = |error: &str| Review {
        error: error.to_owned(),
        ..Review::default()
    };
    let invalid = || refused("[invalid bearer token, service account token is not valid]");
    let Some(bearer) = world.tokens.bearers.get(token) else {
        return refused("invalid bearer token");
    };
    if bearer.expires.is_some_and(|at| at <= Instant::now()) {
        return refused("[invalid bearer token, service account token has expired]");
    }
    if let Some((key, uid)) = &bearer.pod {
        let pod = world.store.get(key).filter(|pod| *pod.uid() == **uid);
        let Some(pod) = pod else {
            return invalid();
        };
        let ends = pod.text("deletionTimestamp");
        let is_long_over = world
            .clock
            .instant(ends)
            .is_some_and(|at| at + AFTERLIFE < Instant::now());
        if is_long_over {
            return invalid();
        }
    }
    let wanted = audience.unwrap_or(API_AUDIENCE);
    if !bearer.audiences.iter().any(|each| each == wanted) {
        return refused(&format!(
            "[invalid bearer token, token audiences {:?} is invalid for the target audiences \
             [{wanted:?}]]",
            bearer.audiences
        ));
    }
    Review {
        authenticated: Some(true),
        error: String::new(),
        audiences: vec![wanted.to_owned()],
        username: bearer.username.clone(),
        groups: bearer.groups.clone(),
        extra: bearer.extra.clone(),
    }
}

#[async_trait]
impl Identities for SimClient {
    async fn review(&self, token: &Secret, audience: Option<&str>) -> Result<Review, Refusal> {
        let answer = |world: &mut World| Ok(review(world, token.expose(), audience));
        self.call("review", String::new(), answer).await
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodIdentity>, Refusal> {
        let key = Key::new("Pod", namespace, name);
        let subject = key.to_string();
        let json = self
            .call("pod", subject, |world| {
                Ok(world.live(&key)?.map(|pod| pod.json().to_string()))
            })
            .await?;
        let pod = json.map(|json| PodIdentity::from_slice(json.as_bytes()));
        pod.transpose()
            .map_err(|problem| unreadable(problem.to_string()))
    }

    async fn replica_set(&self, namespace: &str, name: &str) -> Result<Option<Metadata>, Refusal> {
        let object = ObjectRef::new(Resource::ReplicaSet, namespace, name);
        krane_ports::Cluster::metadata(self, &object).await
    }
}

#[cfg(test)]
mod tests {
    use krane_domain::secrets::{Denial, identify};
    use serde_json::json;

    use super::super::{Options, SimCluster};
    use super::*;

    fn pod(name: &str) -> serde_json::Value {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        })
    }

    fn cluster() -> (SimCluster, TokenIssuer) {
        let cluster = SimCluster::new(Options::default());
        let admin = cluster.admin();
        admin.create_namespace("a").unwrap();
        admin.create(pod("one"), "test").unwrap();
        (cluster.clone(), cluster.tokens())
    }

    async fn said_of(
        cluster: &SimCluster,
        token: &Secret,
        audience: Option<&str>,
    ) -> Result<String, Denial> {
        let review = cluster.client().review(token, audience).await.unwrap();
        identify(&review, audience).map(|identity| identity.pod)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_good_for_its_audience_as_long_as_its_pod_lives() {
        let (cluster, tokens) = cluster();
        let plain = tokens.for_pod("a", "one", &[]).unwrap();
        let own = tokens.for_pod("a", "one", &["krane", "x"]).unwrap();
        assert_eq!(said_of(&cluster, &plain, None).await, Ok("one".to_owned()));
        assert_eq!(
            said_of(&cluster, &own, Some("krane")).await,
            Ok("one".to_owned())
        );
        let no = Err(Denial::NotAuthenticated);
        assert_eq!(said_of(&cluster, &own, None).await, no);
        assert_eq!(said_of(&cluster, &plain, Some("krane")).await, no);
        assert_eq!(said_of(&cluster, &Secret::new("x".into()), None).await, no);
        let object = ObjectRef::new(Resource::Pod, "a", "one");
        cluster.admin().delete(&object, Some(0)).unwrap();
        cluster.step();
        assert_eq!(said_of(&cluster, &plain, None).await, no);
        cluster.admin().create(pod("one"), "test").unwrap();
        assert_eq!(
            said_of(&cluster, &plain, None).await,
            no,
            "another pod of its name"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_expires_and_one_of_an_account_names_no_pod() {
        let (cluster, tokens) = cluster();
        let account = tokens.for_account("a", "default");
        let result = said_of(&cluster, &account, None).await;
        assert_eq!(result, Err(Denial::NotBoundToAPod));
        let node = tokens.for_user("system:node:n", &["system:nodes"]);
        let result = said_of(&cluster, &node, None).await;
        assert_eq!(result, Err(Denial::NotAServiceAccount));
        let plain = tokens.for_pod("a", "one", &[]).unwrap();
        tokens.expire(&plain);
        let result = said_of(&cluster, &plain, None).await;
        assert_eq!(result, Err(Denial::NotAuthenticated));
    }
}
