//! The Lease in krane's own namespace as the port [`Leases`].
//!
//! It has a limit of its own on requests (D22a), and nothing that the controllers do can fill it.
//! A change is a merge patch that names the version it was made for: the rights are get, create
//! and patch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use krane_domain::labels;
use krane_domain::lease::{Claim, Failure, Record};
use krane_domain::refusal::Refusal;
use krane_ports::{LeaseFailure, Leases};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::json_problem;
use super::request::push_query;
use super::{
    Call, CallLimits, CallTimeouts, JSON, KubeCalls, KubeConnection, MERGE_PATCH, Reply, Verb,
    lease_path,
};

const PLURAL: &str = "leases";
/// Requests in flight.
const MOST: usize = 8;
/// Of one request; the election has shorter limits of its own, and a slow Lease is a lost one.
const LIMIT: Duration = Duration::from_secs(10);

/// The Lease behind a [`KubeConnection`].
#[derive(Debug)]
pub struct KubeLeases {
    calls: KubeCalls,
    namespace: String,
}

impl KubeLeases {
    /// The Lease in the namespace of these credentials.
    pub fn new(connection: Arc<KubeConnection>) -> Self {
        let limits = CallLimits {
            max_in_flight: MOST,
            ..CallLimits::default()
        };
        let namespace = connection.namespace().to_owned();
        Self {
            calls: KubeCalls::new(connection, limits, CallTimeouts::fixed(LIMIT)),
            namespace,
        }
    }

    async fn write(&self, call: Call) -> Result<Record, LeaseFailure> {
        let reply = self
            .calls
            .run(&call)
            .await
            .map_err(|refusal| unknown(&refusal))?;
        match reply.code {
            // It is there already, it is another version, or it is gone.
            404 | 409 => Err(LeaseFailure {
                kind: Failure::Conflict,
                text: reply.refusal().to_string(),
            }),
            _ if reply.is_success() => record(&reply),
            _ => Err(unknown(&reply.refusal())),
        }
    }
}

#[async_trait]
impl Leases for KubeLeases {
    async fn read(&self) -> Result<Option<Record>, LeaseFailure> {
        let target = lease_path(&self.namespace, Some(labels::LEASE_NAME))
            .map_err(|refusal| unknown(&refusal))?;
        let call = Call::new(Verb::Get, PLURAL, target);
        let reply = self
            .calls
            .run(&call)
            .await
            .map_err(|refusal| unknown(&refusal))?;
        if reply.is_absent(labels::LEASE_NAME) {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(unknown(&reply.refusal()));
        }
        record(&reply).map(Some)
    }

    async fn create(&self, claim: &Claim) -> Result<Record, LeaseFailure> {
        let mut target = lease_path(&self.namespace, None).map_err(|refusal| unknown(&refusal))?;
        push_query(&mut target, &[("fieldManager", labels::MANAGER)]);
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": labels::LEASE_NAME,
                "namespace": self.namespace,
                "labels": {
                    labels::MANAGED_BY: labels::MANAGER,
                    labels::COMPONENT: labels::COMPONENT_LEASE,
                },
            },
            "spec": spec(claim, jiff_now()),
        });
        let body = Bytes::from(body.to_string());
        self.write(Call::new(Verb::Create, PLURAL, target).with_body(JSON, body))
            .await
    }

    async fn update(&self, version: &str, claim: &Claim) -> Result<Record, LeaseFailure> {
        let mut target = lease_path(&self.namespace, Some(labels::LEASE_NAME))
            .map_err(|refusal| unknown(&refusal))?;
        push_query(&mut target, &[("fieldManager", labels::MANAGER)]);
        let body = json!({
            "metadata": {"resourceVersion": version},
            "spec": spec(claim, jiff_now()),
        });
        let body = Bytes::from(body.to_string());
        self.write(Call::new(Verb::Patch, PLURAL, target).with_body(MERGE_PATCH, body))
            .await
    }
}

/// The time of day, for people who look at the Lease and for other implementations.
#[expect(
    clippy::disallowed_methods,
    reason = "an adapter; nothing of krane reckons with it"
)]
fn jiff_now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

fn spec(claim: &Claim, now: jiff::Timestamp) -> Value {
    let now = format!("{now:.6}");
    let mut spec = json!({
        "holderIdentity": claim.holder.as_deref().unwrap_or_default(),
        "leaseDurationSeconds": claim.duration.as_secs(),
        "leaseTransitions": claim.transitions,
        "renewTime": now,
    });
    if claim.is_new {
        spec["acquireTime"] = Value::String(now);
    }
    spec
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    lease_transitions: Option<u32>,
    acquire_time: Option<String>,
}

fn record(reply: &Reply) -> Result<Record, LeaseFailure> {
    let object: Object = serde_json::from_slice(&reply.body).map_err(|error| LeaseFailure {
        kind: Failure::Unknown,
        text: format!("the Lease cannot be understood: {}", json_problem(&error)),
    })?;
    let spec = object.spec.unwrap_or_default();
    let acquired = spec.acquire_time.and_then(|text| {
        let time: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(time.as_second()).ok()
    });
    Ok(Record {
        uid: object.metadata.uid.into(),
        version: object.metadata.resource_version.into(),
        holder: spec
            .holder_identity
            .filter(|holder| !holder.is_empty())
            .map(Into::into),
        duration: spec.lease_duration_seconds.map(Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or_default(),
        acquired_at: acquired,
    })
}

fn unknown(refusal: &Refusal) -> LeaseFailure {
    LeaseFailure {
        kind: Failure::Unknown,
        text: refusal.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_and_a_renewal_leaves_the_beginning_alone() {
        let now: jiff::Timestamp = "2026-11-28T10:00:00.1234567Z".parse().unwrap();
        let mut claim = Claim {
            holder: Some("a".into()),
            duration: Duration::from_secs(15),
            transitions: 3,
            is_new: true,
        };
        let expected = json!({
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "renewTime": "2026-11-28T10:00:00.123456Z",
            "acquireTime": "2026-11-28T10:00:00.123456Z",
        });
        assert_eq!(spec(&claim, now), expected);
        claim.is_new = false;
        claim.holder = None;
        let renewal = spec(&claim, now);
        assert_eq!(renewal["holderIdentity"], "");
        assert_eq!(renewal.get("acquireTime"), None);
    }

    #[test]
    fn a_lease_that_somebody_made_by_hand_is_understood() {
        let read = |body: &str| {
            let body = Bytes::copy_from_slice(body.as_bytes());
            record(&Reply::new(200, &http::HeaderMap::new(), body))
        };
        let bare = read(r#"{"metadata":{"uid":"u","resourceVersion":"7"}}"#).unwrap();
        assert_eq!(
            (bare.holder, bare.duration, bare.transitions),
            (None, None, 0)
        );
        let full = read(
            r#"{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"holderIdentity":"x",
                "leaseDurationSeconds":15,"leaseTransitions":2,
                "acquireTime":"1970-01-01T00:01:00.000000Z"}}"#,
        )
        .unwrap();
        assert_eq!(full.acquired_at, Some(60));
        assert_eq!(full.holder.as_deref(), Some("x"));
        let freed =
            r#"{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"holderIdentity":""}}"#;
        assert_eq!(read(freed).unwrap().holder, None);
        assert_eq!(read("{}").unwrap_err().kind, Failure::Unknown);
    }
}
