//! One request, from its token to its answer.
//!
//! The order is that of trust: sizes, token, pod, deployment, environment, owner, desired state,
//! blob; only then is the vault asked. After it has answered the pod is looked at once more: what was deleted
//! meanwhile gets nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::object::Metadata;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::secret::Secret;
use krane_domain::secrets::{
    Claim, Denial, Identity, Ownership, PodIdentity, Unproved, identify, is_same_pod, parse_blob,
    prove,
};
use krane_ports::{DecryptRequest, Refused, VaultFailure, VaultFailureKind};
use tokio::time::{Instant, timeout};

use super::SecretsParts;
use super::dependency::Dependency;
use super::limits::Limits;
use super::metrics::SecretsMetrics;
use super::outcome::Outcome;
use super::ownership::PodOwnership;
use crate::status::StatusBoard;

/// The whole answer; the client in a pod waits for 30 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// One question to the API server.
const CLUSTER_LIMIT: Duration = Duration::from_secs(5);
/// One try of the vault.
const VAULT_LIMIT: Duration = Duration::from_secs(10);
/// A vault that failed sooner than this is asked once more.
const QUICK: Duration = Duration::from_secs(1);
/// Bytes of the largest token and blob.
const LARGEST_TOKEN: usize = 8 << 10;
const LARGEST_BLOB: usize = 1 << 20;

type Plaintexts = BTreeMap<String, Secret>;

/// Answers requests; shared by all that are under way.
pub(super) struct Desk {
    parts: SecretsParts,
    ownership: PodOwnership,
    cluster: Dependency,
    vault: Dependency,
    pub(super) metrics: SecretsMetrics,
}

/// What is known of who asks, for the audit log.
#[derive(Default)]
struct Record {
    identity: Option<Identity>,
    names: usize,
    /// Why the desired states did not say whose the pod is, if they did not.
    unproved: Option<Unproved>,
    /// Words on what failed; never of the request.
    detail: Option<String>,
}

impl Desk {
    pub(super) fn new(
        parts: SecretsParts,
        ownership: PodOwnership,
        metrics: SecretsMetrics,
    ) -> Self {
        let chance = &parts.chance;
        Self {
            cluster: Dependency::new("cluster", chance.clone()),
            vault: Dependency::new("vault", chance.clone()),
            parts,
            ownership,
            metrics,
        }
    }

    pub(super) async fn answer(
        &self,
        request: DecryptRequest,
        limits: &Limits,
        board: &StatusBoard,
    ) -> Result<Plaintexts, Refused> {
        let mut answering = Answering {
            desk: self,
            board,
            record: Record::default(),
        };
        let answer = timeout(ANSWER_LIMIT, answering.steps(&request, limits)).await;
        let answer = answer.unwrap_or(Err(Outcome::TimedOut));
        let outcome = answer.as_ref().err().copied().unwrap_or(Outcome::Granted);
        self.metrics.count(outcome);
        if let (Outcome::Granted, Some(why)) = (outcome, answering.record.unproved) {
            self.metrics.count_unproved(why);
        }
        self.metrics
            .breakers(self.cluster.gauge(), self.vault.gauge());
        audit(&request, &answering.record, outcome);
        answer.map_err(|outcome| outcome.refused().unwrap_or(Refused::Internal))
    }
}

/// One request under way.
struct Answering<'a> {
    desk: &'a Desk,
    board: &'a StatusBoard,
    record: Record,
}

impl Answering<'_> {
    async fn steps(
        &mut self,
        request: &DecryptRequest,
        limits: &Limits,
    ) -> Result<Plaintexts, Outcome> {
        let denied = Outcome::Denied;
        if request.token.expose().is_empty() {
            return Err(denied(Denial::NoToken));
        }
        if request.token.expose().len() > LARGEST_TOKEN || request.blob.len() > LARGEST_BLOB {
            return Err(denied(Denial::TooLarge));
        }
        let identity = self.identity(&request.token).await?;
        if !limits.pod(&identity.uid, self.board.now()) {
            return Err(Outcome::Limited);
        }
        let pod = self.pod(&identity).await?;
        let owner = self.owner(&identity, pod.as_ref()).await?;
        let claim = Claim {
            deployment_id: &request.deployment_id,
            environment_id: &request.environment_id,
        };
        let proof = prove(&identity, pod.as_ref(), owner.as_ref(), claim).map_err(denied)?;
        let now = self.board.now();
        match self.desk.ownership.judge(&proof.origin, now) {
            Ownership::Desired => {}
            Ownership::NotDesired => return Err(denied(Denial::NotDesired)),
            Ownership::Unproved(why) => self.record.unproved = Some(why),
        }
        if request.blob.is_empty() {
            return Ok(Plaintexts::new());
        }
        let items = parse_blob(&request.blob).map_err(|problem| {
            self.record.detail = Some(problem.to_string());
            Outcome::MalformedBlob
        })?;
        proof.covers(&request.blob).map_err(denied)?;
        self.record.names = items.len();
        if items.is_empty() {
            return Ok(Plaintexts::new());
        }
        let plaintexts = self.decrypt(proof.key_ring, &items).await?;
        let pod = self.pod(&identity).await?;
        is_same_pod(&identity, pod.as_ref()).map_err(denied)?;
        Ok(plaintexts)
    }

    async fn identity(&mut self, token: &Secret) -> Result<Identity, Outcome> {
        let audience = self.desk.parts.audience.as_deref();
        let review = self.desk.parts.identities.review(token, audience);
        let review = self.of_cluster(review).await?;
        let identity = identify(&review, audience).map_err(Outcome::Denied)?;
        self.record.identity = Some(identity.clone());
        Ok(identity)
    }

    async fn pod(&mut self, identity: &Identity) -> Result<Option<PodIdentity>, Outcome> {
        let identities = &self.desk.parts.identities;
        let pod = identities.pod(&identity.namespace, &identity.pod);
        self.of_cluster(pod).await
    }

    async fn owner(
        &mut self,
        identity: &Identity,
        pod: Option<&PodIdentity>,
    ) -> Result<Option<Metadata>, Outcome> {
        let Some(owner) = pod.and_then(|pod| pod.replica_set()) else {
            return Ok(None);
        };
        let identities = &self.desk.parts.identities;
        let owner = identities.replica_set(&identity.namespace, owner);
        self.of_cluster(owner).await
    }

    async fn of_cluster<T>(
        &mut self,
        question: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Outcome> {
        let question = timeout(CLUSTER_LIMIT, question);
        let is_well = |answer: &Result<Result<T, Refusal>, _>| match answer {
            Ok(Ok(_)) => true,
            Ok(Err(refusal)) => refusal.class != RefusalClass::Transient,
            Err(_) => false,
        };
        let words = match self.desk.cluster.call(self.board, question, is_well).await {
            Some(Ok(Ok(answer))) => return Ok(answer),
            Some(Ok(Err(refusal))) => format!("HTTP {}: {}", refusal.code, refusal.message),
            Some(Err(_)) => format!("no answer within {CLUSTER_LIMIT:?}"),
            None => "not asked: the breaker is open".to_owned(),
        };
        self.record.detail = Some(words);
        Err(Outcome::ClusterUnavailable)
    }

    async fn decrypt(
        &mut self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<Plaintexts, Outcome> {
        let began = Instant::now();
        let first = self.try_vault(key_ring, items).await;
        let is_worth_another = matches!(
            &first,
            Err(failure) if failure.kind == VaultFailureKind::Unavailable
        ) && began.elapsed() < QUICK;
        let answer = if is_worth_another {
            self.try_vault(key_ring, items).await
        } else {
            first
        };
        match answer {
            Ok(plaintexts) if plaintexts.keys().eq(items.keys()) => Ok(plaintexts),
            Ok(_) => {
                self.record.detail = Some("the vault left names out, or added some".to_owned());
                Err(Outcome::VaultUnavailable)
            }
            Err(failure) => {
                self.record.detail = Some(failure.to_string());
                Err(match failure.kind {
                    VaultFailureKind::Refused => Outcome::VaultRefused,
                    VaultFailureKind::Unavailable => Outcome::VaultUnavailable,
                })
            }
        }
    }

    async fn try_vault(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<Plaintexts, VaultFailure> {
        let unavailable = |message: String| VaultFailure {
            kind: VaultFailureKind::Unavailable,
            code: "unavailable",
            message,
        };
        let call = timeout(VAULT_LIMIT, self.desk.parts.vault.decrypt(key_ring, items));
        let is_well = |answer: &Result<Result<Plaintexts, VaultFailure>, _>| match answer {
            Ok(Ok(_)) => true,
            Ok(Err(failure)) => failure.kind == VaultFailureKind::Refused,
            Err(_) => false,
        };
        match self.desk.vault.call(self.board, call, is_well).await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => Err(unavailable(format!("no answer within {VAULT_LIMIT:?}"))),
            None => Err(unavailable("not asked: the breaker is open".to_owned())),
        }
    }
}

/// One line per request: who, which deployment, how many names; never a value. What the request
/// only claims is marked as such, and cut: anybody may send anything.
fn audit(request: &DecryptRequest, record: &Record, outcome: Outcome) {
    let identity = record.identity.as_ref();
    let result = outcome.name();
    let namespace = identity.map(|identity| &*identity.namespace);
    let pod = identity.map(|identity| &*identity.pod);
    let uid = identity.map(|identity| &*identity.uid);
    let account = identity.map(|identity| &*identity.service_account);
    let credential = identity.and_then(|identity| identity.credential.as_deref());
    let peer = request.peer.map(tracing::field::display);
    let (names, detail) = (record.names, record.detail.as_deref());
    let unproved = record.unproved.map(Unproved::name);
    let deployment = shown(&request.deployment_id);
    let environment = shown(&request.environment_id);
    if outcome == Outcome::Granted {
        tracing::info!(
            result,
            namespace,
            pod,
            uid,
            account,
            credential,
            peer,
            deployment,
            environment,
            names,
            unproved,
            "secrets handed out"
        );
        return;
    }
    let reason = outcome.denial().map(tracing::field::display);
    tracing::warn!(
        result,
        namespace,
        pod,
        uid,
        account,
        credential,
        peer,
        claimed_deployment = deployment,
        claimed_environment = environment,
        reason,
        detail,
        "secrets refused"
    );
}

/// An id as a log may show it.
fn shown(id: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain: String = id.chars().take_while(is_plain).take(63).collect();
    if plain.len() == id.len() {
        plain
    } else {
        format!("{plain}…")
    }
}
