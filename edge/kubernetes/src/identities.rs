//! Tokens and the pods behind them as the port [`Identities`].
//!
//! It has a limit of its own on requests (D22a): a flood of tokens fills it and nothing else. What
//! the API server says in words about a token is not kept: it may quote it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use krane_domain::object::{Metadata, ObjectRef, Resource};
use krane_domain::refusal::Refusal;
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};
use krane_ports::{Cluster, Identities};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::connection::KubeConnection;
use super::limits::{CallLimits, CallTimeouts};
use super::reply::{json_problem, unreadable};
use super::request::{Call, Verb};
use super::{JSON, KubeCluster, refusal};

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const PLURAL: &str = "tokenreviews";
/// Requests in flight.
const MOST: usize = 32;
/// One request; pods wait for it.
const LIMIT: Duration = Duration::from_secs(5);

/// Tokens and pods behind a [`KubeConnection`].
#[derive(Debug)]
pub struct KubeIdentities {
    cluster: KubeCluster,
}

impl KubeIdentities {
    /// Asks over this connection.
    pub fn new(connection: Arc<KubeConnection>) -> Self {
        let limits = CallLimits {
            max_in_flight: MOST,
            ..CallLimits::default()
        };
        Self {
            cluster: KubeCluster::new(connection, limits, CallTimeouts::fixed(LIMIT)),
        }
    }
}

#[async_trait]
impl Identities for KubeIdentities {
    async fn review(&self, token: &Secret, audience: Option<&str>) -> Result<Review, Refusal> {
        let body = Zeroizing::new(request_body(token, audience));
        let body = Bytes::copy_from_slice(&body);
        let call = Call::new(Verb::Create, PLURAL, PATH.to_owned()).with_body(JSON, body);
        let reply = self.cluster.calls.run(&call).await?;
        if !reply.is_success() {
            return Err(Refusal {
                message: "the TokenReview was not made".to_owned(),
                ..reply.refusal()
            });
        }
        let answer: Answer = serde_json::from_slice(&reply.body)
            .map_err(|error| unreadable(reply.code, json_problem(&error)))?;
        Ok(answer.status.into())
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodIdentity>, Refusal> {
        let object = ObjectRef::new(Resource::Pod, namespace, name);
        let reply = self.cluster.run(Verb::Get, &object).await?;
        if reply.is_absent(name) {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(refusal(&reply, &object));
        }
        let pod = PodIdentity::from_slice(&reply.body);
        pod.map(Some)
            .map_err(|problem| unreadable(reply.code, problem.to_string()))
    }

    async fn replica_set(&self, namespace: &str, name: &str) -> Result<Option<Metadata>, Refusal> {
        let object = ObjectRef::new(Resource::ReplicaSet, namespace, name);
        self.cluster.metadata(&object).await
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
    /// Left out, the API server's own are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    audiences: Option<[&'a str; 1]>,
}

fn request_body(token: &Secret, audience: Option<&str>) -> Vec<u8> {
    let question = Question {
        api_version: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: Spec {
            token: token.expose(),
            audiences: audience.map(|audience| [audience]),
        },
    };
    // Texts in maps of texts always serialize.
    serde_json::to_vec(&question).unwrap_or_default()
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Status,
}

/// Every field may be absent or null; none is taken for granted.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    authenticated: Option<bool>,
    error: Option<String>,
    audiences: Option<Vec<String>>,
    user: Option<User>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Option<Vec<String>>>>,
}

impl From<Status> for Review {
    fn from(status: Status) -> Self {
        let user = status.user.unwrap_or_default();
        let extra = user.extra.unwrap_or_default().into_iter();
        Self {
            authenticated: status.authenticated,
            error: status.error.unwrap_or_default(),
            audiences: status.audiences.unwrap_or_default(),
            username: user.username.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: extra
                .map(|(key, values)| (key, values.unwrap_or_default()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Review, serde_json::Error> {
        serde_json::from_str::<Answer>(json).map(|answer| answer.status.into())
    }

    mod fuzz {
        use krane_domain::secrets::identify;
        use krane_testfuzz::Fuzz;

        use super::*;

        /// Whatever an answer is: nobody is believed who is not said to be who he is.
        #[test]
        fn no_answer_makes_a_pod_of_somebody_who_is_not_authenticated() {
            let fuzz = Fuzz::new("TokenReview")
                .document(
                    r#"{"kind":"TokenReview","status":{"authenticated":true,"audiences":["krane"],
                        "user":{"username":"system:serviceaccount:ns:default","groups":["g"],
                        "extra":{"authentication.kubernetes.io/pod-name":["p"],
                        "authentication.kubernetes.io/pod-uid":["u"]}}}}"#,
                )
                .document(r#"{"status":{"authenticated":false,"error":"expired"}}"#)
                .words([
                    "null",
                    "true",
                    "false",
                    "[]",
                    "{}",
                    "\"\"",
                    "[\"p\",\"q\"]",
                    "\"system:node:x\"",
                ]);
            fuzz.run(|input| {
                let Ok(answer) = serde_json::from_slice::<Answer>(input) else {
                    return;
                };
                let review = Review::from(answer.status);
                for audience in [None, Some("krane")] {
                    if let Ok(identity) = identify(&review, audience) {
                        assert_eq!(review.authenticated, Some(true));
                        assert!(!identity.pod.is_empty() && !identity.uid.is_empty());
                        assert!(audience.is_none_or(|it| review.audiences.iter().any(|a| a == it)));
                    }
                }
            });
        }
    }

    #[test]
    fn an_audience_is_sent_and_none_is_left_out() {
        let token = Secret::new("t\"\\".to_owned());
        let text = |audience| String::from_utf8(request_body(&token, audience)).unwrap();
        assert_eq!(
            text(Some("krane")),
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"t\"\\","audiences":["krane"]}}"#
        );
        assert!(text(None).ends_with(r#""spec":{"token":"t\"\\"}}"#));
    }

    /// kubernetes/kubernetes#62692 (B45): optional fields stay what they are.
    #[test]
    fn nothing_in_an_answer_is_taken_for_granted() {
        for empty in ["{}", r#"{"status":{}}"#, r#"{"status":{"user":null}}"#] {
            assert_eq!(read(empty).unwrap(), Review::default(), "{empty}");
        }
        let full = read(
            r#"{"spec":{"token":"echo"},"status":{"authenticated":true,"error":"late",
                "audiences":["a","b"],"user":{"username":"u","uid":"1","groups":["g"],
                "extra":{"k":["v","w"],"n":null}}}}"#,
        )
        .unwrap();
        assert_eq!(full.authenticated, Some(true));
        assert_eq!((&*full.error, &*full.username), ("late", "u"));
        assert_eq!(full.audiences, ["a", "b"]);
        assert_eq!(full.extra["k"], ["v", "w"]);
        assert_eq!(full.extra["n"], [""; 0]);
        for wrong in [
            "",
            r#"{"status":7}"#,
            r#"{"status":{"authenticated":"true"}}"#,
            r#"{"status":{"user":{"extra":{"k":"v"}}}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
