//! An API server and a vault that do as they are told, and an actor between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::ids::Moment;
use krane_domain::labels;
use krane_domain::object::Metadata;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};
use krane_ports::{
    DecryptRequest, Identities, Refused, SecretsDesk, Vault, VaultFailure, VaultFailureKind,
};
use krane_supervision::actor::ShellArguments;
use krane_supervision::address::Address;
use krane_supervision::meter::Meter;
use krane_supervision::supervisor::{ChildSpec, worker};
use krane_supervision::testing::{Rig, Top, parking, pause, until};
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::json;

use super::super::{Outcome, PodOwnership, Secrets, SecretsClient, SecretsMetrics, SecretsParts};
use crate::chance::Chance;
use crate::status::StatusBoard;

pub(super) const BLOB: &str = r#"{"secrets":{"A":"Y2lwaGVy","B":"Y2lwaGVy"}}"#;
/// Base64 of [`BLOB`].
pub(super) const ENCODED: &str = "eyJzZWNyZXRzIjp7IkEiOiJZMmx3YUdWeSIsIkIiOiJZMmx3YUdWeSJ9fQ==";

/// What the API server and the vault do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Well,
    Slow(Duration),
    Fails,
    Forbidden,
    Hangs,
    Panics,
}

impl Way {
    async fn go(self) -> Result<(), Refusal> {
        let refusal = |class, code| Refusal {
            class,
            code,
            message: "no".to_owned(),
            retry_after: None,
        };
        match self {
            Self::Well => Ok(()),
            Self::Slow(time) => {
                pause(time).await;
                Ok(())
            }
            Self::Fails => Err(refusal(RefusalClass::Transient, 500)),
            Self::Forbidden => Err(refusal(RefusalClass::Configuration, 403)),
            Self::Hangs => std::future::pending().await,
            Self::Panics => panic!("canary-panic"),
        }
    }
}

pub(super) struct Script {
    pub(super) review: Way,
    pub(super) pod: Way,
    pub(super) set: Way,
    pub(super) vault: Vec<Way>,
    pub(super) refusal: VaultFailureKind,
    /// Whether the pod is gone once the vault was asked.
    pub(super) dies_meanwhile: bool,
    pub(super) leaves_out: bool,
}

pub(super) struct Scene {
    pub(super) script: Mutex<Script>,
    pub(super) reviews: AtomicUsize,
    pub(super) pods: AtomicUsize,
    pub(super) decrypts: AtomicUsize,
    pub(super) ring: Mutex<String>,
}

impl Scene {
    pub(super) fn vault_calls(&self) -> usize {
        self.decrypts.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock());
    }
}

#[async_trait]
impl Identities for Scene {
    async fn review(&self, token: &Secret, audience: Option<&str>) -> Result<Review, Refusal> {
        self.reviews.fetch_add(1, Ordering::Relaxed);
        let way = self.script.lock().review;
        way.go().await?;
        // The token says which pod it is of.
        let Some(pod) = token.expose().strip_prefix("token-of-") else {
            return Ok(Review::default());
        };
        let extra =
            |key: &str, value: String| (format!("authentication.kubernetes.io/{key}"), vec![value]);
        Ok(Review {
            authenticated: Some(true),
            username: "system:serviceaccount:tenant:default".to_owned(),
            groups: vec!["system:serviceaccounts:tenant".to_owned()],
            audiences: vec![audience.unwrap_or("https://kubernetes").to_owned()],
            extra: BTreeMap::from([
                extra("pod-name", pod.to_owned()),
                extra("pod-uid", format!("uid-{pod}")),
            ]),
            ..Review::default()
        })
    }

    async fn pod(&self, _: &str, name: &str) -> Result<Option<PodIdentity>, Refusal> {
        self.pods.fetch_add(1, Ordering::Relaxed);
        let (way, dies) = {
            let script = self.script.lock();
            (script.pod, script.dies_meanwhile)
        };
        way.go().await?;
        if dies && self.vault_calls() > 0 {
            return Ok(None);
        }
        let pod = json!({
            "metadata": {
                "uid": format!("uid-{name}"),
                "labels": {
                    labels::MANAGED_BY: "krane", labels::COMPONENT: "deployment",
                    labels::DEPLOYMENT_ID: "d_1", labels::ENVIRONMENT_ID: "env_1",
                    labels::WORKSPACE_ID: "ws_1",
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app",
                    "uid": "uid-set", "controller": true,
                }],
            },
            "spec": {
                "serviceAccountName": "default",
                "containers": [{"env": [{"name": "UNKEY_ENCRYPTED_ENV", "value": ENCODED}]}],
            },
            "status": {"phase": "Running"},
        });
        Ok(PodIdentity::from_slice(pod.to_string().as_bytes()).ok())
    }

    async fn replica_set(&self, _: &str, _: &str) -> Result<Option<Metadata>, Refusal> {
        let way = self.script.lock().set;
        way.go().await?;
        let labels = [
            (labels::MANAGED_BY, "krane"),
            (labels::COMPONENT, "deployment"),
            (labels::DEPLOYMENT_ID, "d_1"),
            (labels::ENVIRONMENT_ID, "env_1"),
        ];
        Ok(Some(Metadata {
            uid: "uid-set".into(),
            labels: labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            is_terminating: false,
        }))
    }
}

#[async_trait]
impl Vault for Scene {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        let call = self.decrypts.fetch_add(1, Ordering::Relaxed);
        key_ring.clone_into(&mut self.ring.lock());
        let (way, kind, leaves_out) = {
            let script = self.script.lock();
            let last = script.vault.len() - 1;
            (
                script.vault[call.min(last)],
                script.refusal,
                script.leaves_out,
            )
        };
        way.go().await.map_err(|_| VaultFailure {
            kind,
            code: "unavailable",
            message: "no".to_owned(),
        })?;
        let items = items.keys().skip(usize::from(leaves_out));
        Ok(items
            .map(|name| (name.clone(), Secret::new(format!("plain-{name}"))))
            .collect())
    }
}

pub(super) struct Setting {
    rig: Rig,
    _top: Top,
    pub(super) scene: Arc<Scene>,
    pub(super) desk: Arc<SecretsClient>,
    pub(super) metrics: SecretsMetrics,
}

impl Setting {
    /// One that knows no desired states.
    pub(super) async fn start() -> Self {
        Self::start_with(PodOwnership::default()).await
    }

    pub(super) async fn start_with(ownership: PodOwnership) -> Self {
        let scene = Arc::new(Scene {
            script: Mutex::new(Script {
                review: Way::Well,
                pod: Way::Well,
                set: Way::Well,
                vault: vec![Way::Well],
                refusal: VaultFailureKind::Unavailable,
                dies_meanwhile: false,
                leaves_out: false,
            }),
            reviews: AtomicUsize::default(),
            pods: AtomicUsize::default(),
            decrypts: AtomicUsize::default(),
            ring: Mutex::default(),
        });
        let metrics = SecretsMetrics::register(&Registry::new()).unwrap();
        let parts = SecretsParts {
            identities: scene.clone(),
            vault: scene.clone(),
            audience: None,
            chance: Chance::new(7),
        };
        let board = StatusBoard::new();
        let rig = Rig::on(board.actors().clone(), 1);
        let address = Address::vacant("root/secrets", 512);
        let (home, counts) = (address.clone(), metrics.clone());
        let start = worker(move || ShellArguments {
            behaviour: Secrets::new(Some(parts.clone()), ownership.clone(), counts.clone()),
            address: home.clone(),
            board: board.clone(),
            meter: Meter::default(),
        });
        let child = ChildSpec {
            start,
            ..rig.leaf("root/secrets")
        };
        let top = rig.start(parking(vec![child])).await;
        let occupied = address.clone();
        until("it lives", move || occupied.is_occupied()).await;
        Self {
            rig,
            _top: top,
            scene,
            desk: Arc::new(SecretsClient::new(address, metrics.clone())),
            metrics,
        }
    }

    pub(super) async fn ask(
        &self,
        request: DecryptRequest,
    ) -> Result<BTreeMap<String, Secret>, Refused> {
        self.desk.decrypt(request).await
    }

    pub(super) fn now(&self) -> Moment {
        self.rig.board.now()
    }

    pub(super) fn count(&self, outcome: Outcome) -> u64 {
        self.metrics.counted(outcome)
    }
}

pub(super) fn request(pod: &str) -> DecryptRequest {
    DecryptRequest {
        blob: BLOB.as_bytes().to_vec(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        token: Secret::new(format!("token-of-{pod}")),
        peer: None,
    }
}
