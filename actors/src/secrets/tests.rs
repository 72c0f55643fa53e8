//! The secrets actor over a scripted API server and a scripted vault, on a paused clock.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::labels;
use krane_domain::object::Metadata;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::secret::Secret;
use krane_domain::secrets::{Denial, PodIdentity, Review};
use parking_lot::Mutex;
use prometheus::Registry;
use serde_json::json;
use tokio::time::Instant;

use super::{
    DecryptRequest, Outcome, Refused, Secrets, SecretsClient, SecretsDesk, SecretsMetrics,
    SecretsParts,
};
use crate::actor::ShellArguments;
use crate::address::Address;
use crate::chance::Chance;
use crate::metrics::ActorMetrics;
use crate::ports::{Identities, Vault, VaultFailure, VaultFailureKind};
use crate::supervisor::tests::harness::{Rig, Top, parking, pause, until};
use crate::supervisor::{ChildSpec, worker};

const BLOB: &str = r#"{"secrets":{"A":"Y2lwaGVy","B":"Y2lwaGVy"}}"#;
/// Base64 of [`BLOB`].
const ENCODED: &str = "eyJzZWNyZXRzIjp7IkEiOiJZMmx3YUdWeSIsIkIiOiJZMmx3YUdWeSJ9fQ==";

/// What the API server and the vault do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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

struct Script {
    review: Way,
    pod: Way,
    set: Way,
    vault: Vec<Way>,
    refusal: VaultFailureKind,
    /// Whether the pod is gone once the vault was asked.
    dies_meanwhile: bool,
    leaves_out: bool,
}

struct Scene {
    script: Mutex<Script>,
    reviews: AtomicUsize,
    pods: AtomicUsize,
    decrypts: AtomicUsize,
    ring: Mutex<String>,
}

impl Scene {
    fn vault_calls(&self) -> usize {
        self.decrypts.load(Ordering::Relaxed)
    }

    fn set(&self, change: impl FnOnce(&mut Script)) {
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

struct Setting {
    _rig: Rig,
    _top: Top,
    scene: Arc<Scene>,
    desk: Arc<SecretsClient>,
    metrics: SecretsMetrics,
}

impl Setting {
    async fn start() -> Self {
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
        let rig = Rig::new();
        let address = Address::vacant("root/secrets", 512);
        let (board, home, counts) = (rig.board.clone(), address.clone(), metrics.clone());
        let start = worker(move || ShellArguments {
            behaviour: Secrets::new(Some(parts.clone()), counts.clone()),
            address: home.clone(),
            board: board.clone(),
            metrics: ActorMetrics::default(),
        });
        let child = ChildSpec {
            start,
            ..rig.leaf("root/secrets")
        };
        let top = rig.start(parking(vec![child])).await;
        let occupied = address.clone();
        until("it lives", move || occupied.is_occupied()).await;
        Self {
            _rig: rig,
            _top: top,
            scene,
            desk: Arc::new(SecretsClient::new(address, metrics.clone())),
            metrics,
        }
    }

    async fn ask(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        self.desk.decrypt(request).await
    }

    fn count(&self, outcome: Outcome) -> u64 {
        self.metrics.counted(outcome)
    }
}

fn request(pod: &str) -> DecryptRequest {
    DecryptRequest {
        blob: BLOB.as_bytes().to_vec(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        token: Secret::new(format!("token-of-{pod}")),
        peer: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_all_of_its_secrets_from_the_key_ring_of_its_environment() {
    let setting = Setting::start().await;
    let secrets = setting.ask(request("a")).await.unwrap();
    let secrets: Vec<_> = secrets
        .iter()
        .map(|(name, value)| (&**name, value.expose()))
        .collect();
    assert_eq!(secrets, [("A", "plain-A"), ("B", "plain-B")]);
    assert_eq!(*setting.scene.ring.lock(), "env_1");
    assert_eq!(
        setting.scene.pods.load(Ordering::Relaxed),
        2,
        "looked at once more at the end"
    );
    assert_eq!(setting.count(Outcome::Granted), 1);
}

/// No answer is kept: neither a good one nor a bad one.
#[tokio::test(start_paused = true)]
async fn every_request_is_proved_anew() {
    let setting = Setting::start().await;
    for _ in 0..3 {
        setting.ask(request("a")).await.unwrap();
    }
    assert_eq!(setting.scene.reviews.load(Ordering::Relaxed), 3);
    setting.scene.set(|script| script.review = Way::Fails);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    setting.scene.set(|script| script.review = Way::Well);
    assert!(setting.ask(request("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_proves_nothing_never_reaches_the_vault() {
    let setting = Setting::start().await;
    let with = |change: fn(&mut DecryptRequest)| {
        let mut request = request("a");
        change(&mut request);
        request
    };
    let token = |text: &str| DecryptRequest {
        token: Secret::new(text.to_owned()),
        ..request("a")
    };
    let cases = [
        (token(""), Denial::NoToken),
        (token(&"x".repeat(9 << 10)), Denial::TooLarge),
        (token("stranger"), Denial::NotAuthenticated),
        (with(|r| r.blob = vec![b' '; 2 << 20]), Denial::TooLarge),
        (
            with(|r| r.deployment_id = "d_2".into()),
            Denial::AnotherDeployment,
        ),
        (
            with(|r| r.environment_id = "env_2".into()),
            Denial::AnotherEnvironment,
        ),
        (
            with(|r| r.blob = br#"{"secrets":{"A":"x"}}"#.to_vec()),
            Denial::AnotherBlob,
        ),
    ];
    for (request, denial) in cases {
        let before = setting.count(Outcome::Denied(denial));
        assert_eq!(setting.ask(request).await, Err(Refused::Unauthenticated));
        assert_eq!(
            setting.count(Outcome::Denied(denial)),
            before + 1,
            "{denial}"
        );
    }
    assert_eq!(setting.scene.vault_calls(), 0);
}

/// unkeyed/unkey 3a360d289d, PR #4706 (A56): an empty blob has no secrets, and what is no blob is an
/// error.
#[tokio::test(start_paused = true)]
async fn an_empty_blob_is_an_empty_answer_and_a_malformed_one_an_internal_error() {
    let setting = Setting::start().await;
    let with = |blob: &[u8]| DecryptRequest {
        blob: blob.to_vec(),
        ..request("a")
    };
    assert_eq!(setting.ask(with(b"")).await.unwrap().len(), 0);
    assert_eq!(setting.ask(with(b"{")).await, Err(Refused::Internal));
    assert_eq!(setting.count(Outcome::MalformedBlob), 1);
    let stranger = DecryptRequest {
        token: Secret::new("stranger".to_owned()),
        ..with(b"")
    };
    assert_eq!(setting.ask(stranger).await, Err(Refused::Unauthenticated));
    assert_eq!(setting.scene.vault_calls(), 0);
}

/// hashicorp/vault-plugin-auth-kubernetes#179 (B47): what krane cannot find out is no fault of the
/// token.
#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_not_well_makes_it_unavailable_and_nothing_else() {
    for way in [Way::Fails, Way::Forbidden, Way::Hangs] {
        let setting = Setting::start().await;
        let changes: [fn(&mut Script, Way); 3] = [
            |script, way| script.review = way,
            |script, way| script.pod = way,
            |script, way| script.set = way,
        ];
        for change in changes {
            setting.scene.set(|script| change(script, way));
            assert_eq!(
                setting.ask(request("a")).await,
                Err(Refused::Unavailable),
                "{way:?}"
            );
            setting.scene.set(|script| change(script, Way::Well));
        }
        assert_eq!(setting.count(Outcome::ClusterUnavailable), 3);
        assert_eq!(setting.scene.vault_calls(), 0);
        setting.scene.set(|script| script.vault = vec![way]);
        assert_eq!(
            setting.ask(request("a")).await,
            Err(Refused::Unavailable),
            "{way:?}"
        );
        assert_eq!(setting.count(Outcome::VaultUnavailable), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_vault_that_fails_at_once_is_asked_once_more_and_a_slow_one_is_not() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.vault = vec![Way::Fails, Way::Well]);
    assert!(setting.ask(request("a")).await.is_ok());
    assert_eq!(setting.scene.vault_calls(), 2);
    setting.scene.set(|script| script.vault = vec![Way::Hangs]);
    assert!(setting.ask(request("a")).await.is_err());
    assert_eq!(setting.scene.vault_calls(), 3);
    setting.scene.set(|script| {
        script.vault = vec![Way::Fails];
        script.refusal = VaultFailureKind::Refused;
    });
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    assert_eq!(
        setting.scene.vault_calls(),
        4,
        "what it refuses it refuses again"
    );
}

/// unkeyed/unkey 4b7f6d2cf8, PR #5127 (A57): all or nothing.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_vault_that_lacks_a_name_is_no_answer() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.leaves_out = true);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_while_the_vault_decrypts_gets_nothing() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.dies_meanwhile = true);
    assert_eq!(
        setting.ask(request("a")).await,
        Err(Refused::Unauthenticated)
    );
    assert_eq!(setting.count(Outcome::Denied(Denial::PodGone)), 1);
    assert_eq!(setting.scene.vault_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_vault_is_spared_and_asked_again_soon() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.vault = vec![Way::Fails]);
    for _ in 0..20 {
        assert!(setting.ask(request("a")).await.is_err());
    }
    assert!(setting.scene.vault_calls() <= 6, "the breaker is open");
    setting.scene.set(|script| script.vault = vec![Way::Well]);
    pause(Duration::from_secs(10)).await;
    assert!(setting.ask(request("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_pod_that_asks_all_the_time_is_limited_and_no_other_notices() {
    let setting = Setting::start().await;
    let mut limited = 0;
    for _ in 0..200 {
        limited += usize::from(setting.ask(request("greedy")).await.is_err());
        assert!(
            setting
                .ask(request(&format!("other-{limited}")))
                .await
                .is_ok()
        );
    }
    assert!(limited >= 170, "{limited}");
    assert_eq!(setting.count(Outcome::Limited), limited as u64);
}

/// A sender is limited before anybody is asked for it.
#[tokio::test(start_paused = true)]
async fn one_sender_that_asks_all_the_time_costs_the_api_server_nothing_more() {
    let setting = Setting::start().await;
    let from = |last, token: &str| DecryptRequest {
        peer: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))),
        token: Secret::new(token.to_owned()),
        ..request("a")
    };
    for _ in 0..2_000 {
        let _ = setting.ask(from(1, "stranger")).await;
    }
    let reviews = setting.scene.reviews.load(Ordering::Relaxed);
    assert!(reviews < 300, "{reviews}");
    assert!(setting.ask(from(2, "token-of-b")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_request_and_tells_nothing() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.pod = Way::Panics);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    setting.scene.set(|script| script.pod = Way::Well);
    assert!(setting.ask(request("a")).await.is_ok());
    assert_eq!(setting.count(Outcome::Panicked), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_works_for_a_caller_that_has_gone() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.review = Way::Slow(Duration::from_secs(3)));
    let call = setting.ask(request("a"));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
    );
    pause(Duration::from_secs(10)).await;
    assert_eq!(setting.scene.pods.load(Ordering::Relaxed), 0);
    assert_eq!(setting.count(Outcome::Abandoned), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_requests_wait_beside_each_other_up_to_a_number() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.vault = vec![Way::Slow(Duration::from_secs(3))]);
    let began = Instant::now();
    let calls = (0..700).map(|number| {
        let desk = Arc::clone(&setting.desk);
        async move { desk.decrypt(request(&format!("pod-{number}"))).await }
    });
    let answers = futures::future::join_all(calls).await;
    let granted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(granted, super::MOST_AT_ONCE);
    assert!(
        answers
            .iter()
            .all(|answer| answer.is_ok() || *answer == Err(Refused::ResourceExhausted))
    );
    assert!(began.elapsed() < Duration::from_secs(4));
}
