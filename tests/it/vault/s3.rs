//! The embedded vault and a store that misbehaves.

use std::sync::Arc;
use std::time::Duration;

use krane_ports::{Vault as _, VaultFailure, VaultFailureKind};
use krane_testcontract::vaults::seal::SealingKey;
use krane_vault::{EmbeddedTiming, EmbeddedVault};

use super::{CANARY, items, settings};
use crate::cluster_edge::server::{Answer, Seen, Server};

const SHORT: Duration = Duration::from_millis(300);

pub(super) fn master_key() -> SealingKey {
    SealingKey::new("kek_1", 1)
}

pub(super) fn data_key() -> SealingKey {
    SealingKey::new("dek_1", 2)
}

fn vault_settings(address: &str) -> krane_settings::Vault {
    let lines = format!(
        "[vault]\nmaster_keys = ['{}']\n[vault.s3]\nurl = 'http://{address}'\nbucket = 'keys'\n\
         access_key_id = 'krane-id'\naccess_key_secret = '{CANARY}'\n",
        master_key().master_key_text()
    );
    settings(&lines).vault.unwrap()
}

pub(super) fn vault(address: &str) -> EmbeddedVault {
    patient(address, EmbeddedTiming::default().read)
}

/// A vault that waits so long for an object.
fn patient(address: &str, read: Duration) -> EmbeddedVault {
    let krane_settings::Vault::Embedded { master_keys, s3 } = vault_settings(address) else {
        panic!("an embedded vault was configured");
    };
    let timing = EmbeddedTiming {
        read,
        ..EmbeddedTiming::default()
    };
    EmbeddedVault::new(master_keys, &s3, timing).unwrap()
}

pub(super) fn object(body: Vec<u8>) -> Answer {
    Answer::Full {
        status: 200,
        headers: vec![
            ("content-type", "application/octet-stream".to_owned()),
            ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
            ("etag", "\"1\"".to_owned()),
        ],
        body,
    }
}

pub(super) fn error(status: u16, code: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{CANARY}</Message></Error>"
    );
    Answer::text(status, "application/xml", &body)
}

async fn outcome(answer: impl Fn() -> Answer + Send + Sync + 'static) -> VaultFailure {
    outcome_within(EmbeddedTiming::default().read, answer).await
}

async fn outcome_within(
    limit: Duration,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> VaultFailure {
    let server = Server::start(move |_| answer()).await;
    let encrypted = data_key().encrypt(b"text");
    let result = patient(&server.address, limit)
        .decrypt("env_1", &items(&[("A", &encrypted)]))
        .await;
    let failure = result.unwrap_err();
    let told = format!("{failure} {failure:?}");
    assert!(
        !told.contains(CANARY) && !told.contains(&encrypted),
        "{told}"
    );
    assert_eq!(server.requests().len(), 1, "one try: {told}");
    failure
}

async fn check(
    kind: VaultFailureKind,
    code: &str,
    words: &str,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) {
    let failure = outcome(answer).await;
    assert_eq!((failure.kind, failure.code), (kind, code), "{failure}");
    assert!(failure.message.contains(words), "{failure}");
}

#[tokio::test]
async fn a_key_is_read_by_its_path_and_signed_for() {
    let script = |seen: &Seen| {
        assert_eq!(seen.path, "/keys/keyring/env_1/dek_1");
        object(master_key().wrap(&data_key()))
    };
    let server = Server::start(script).await;
    let configured = vault_settings(&server.address);
    let vault = krane_vault::from_settings(Some(&configured), Arc::new(()))
        .unwrap()
        .unwrap();
    let encrypted = data_key().encrypt("plain".as_bytes());
    let items = items(&[("A", &encrypted), ("B", &encrypted)]);
    let texts = vault.decrypt("env_1", &items).await.unwrap();
    assert_eq!(texts["B"].expose(), "plain");
    let seen = server.only_request();
    assert_eq!(seen.method, "GET");
    assert!(seen.headers["user-agent"].starts_with("krane/"));
    let authorization = &seen.headers["authorization"];
    assert!(
        authorization.starts_with("AWS4-HMAC-SHA256 Credential=krane-id/")
            && authorization.contains("/auto/s3/aws4_request"),
        "{authorization}"
    );
}

#[tokio::test]
async fn failures_are_told_apart() {
    use VaultFailureKind::{Refused, Unavailable};
    check(Refused, "not_found", "dek_1", || error(404, "NoSuchKey")).await;
    check(Refused, "failed_precondition", "vault.s3.bucket", || {
        error(404, "NoSuchBucket")
    })
    .await;
    check(Refused, "permission_denied", "access key", || {
        error(403, "SignatureDoesNotMatch")
    })
    .await;
    check(Refused, "permission_denied", "access key", || {
        error(401, "Unauthorized")
    })
    .await;
    check(Unavailable, "unavailable", "HTTP 503", || {
        error(503, "SlowDown")
    })
    .await;
    check(Unavailable, "unavailable", "HTTP 500", || {
        error(500, "InternalError")
    })
    .await;
    check(Unavailable, "unavailable", "HTTP 400", || {
        error(400, "BadRequest")
    })
    .await;
    check(Unavailable, "unavailable", "", || Answer::Close).await;
    let failure = outcome_within(SHORT, || Answer::Hang).await;
    assert_eq!(
        (failure.kind, failure.code),
        (Unavailable, "deadline_exceeded")
    );
}

/// The HTTP client has a limit of its own, which is over by then, too.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the thread has to stand still, as in a process without CPU"
)]
async fn a_process_without_cpu_tells_a_late_answer_as_late() {
    let stand_still = async {
        tokio::time::sleep(SHORT / 2).await;
        std::thread::sleep(SHORT * 3);
    };
    let (failure, ()) = tokio::join!(outcome_within(SHORT, || Answer::Hang), stand_still);
    assert_eq!(failure.code, "deadline_exceeded", "{failure}");
}

#[tokio::test]
async fn what_is_no_stored_key_opens_nothing() {
    use VaultFailureKind::Refused;
    let stored = || master_key().wrap(&data_key());
    check(Refused, "data_loss", "malformed", || {
        object(CANARY.as_bytes().to_vec())
    })
    .await;
    check(Refused, "data_loss", "malformed", || object(Vec::new())).await;
    check(Refused, "data_loss", "bytes", || object(vec![0; 2 << 20])).await;
    check(Refused, "data_loss", "", move || {
        let mut bytes = stored();
        bytes.truncate(bytes.len() - 20);
        object(bytes)
    })
    .await;
    check(Refused, "failed_precondition", "kek_other", || {
        object(SealingKey::new("kek_other", 1).wrap(&data_key()))
    })
    .await;
    check(Refused, "data_loss", "kek_1", || {
        object(SealingKey::new("kek_1", 9).wrap(&data_key()))
    })
    .await;
    check(Refused, "invalid_argument", "\"A\"", || {
        object(master_key().wrap(&SealingKey::new("dek_1", 9)))
    })
    .await;
}

#[tokio::test]
async fn an_object_that_breaks_off_is_read_again_later() {
    let failure = outcome(|| Answer::Cut(b"half".to_vec())).await;
    assert_eq!(failure.kind, VaultFailureKind::Unavailable, "{failure}");
}

#[tokio::test]
async fn a_store_that_is_not_there_is_unavailable() {
    let server = Server::start(|_| Answer::Close).await;
    let address = server.address.clone();
    server.stop().await;
    let encrypted = data_key().encrypt(b"text");
    let result = vault(&address)
        .decrypt("env_1", &items(&[("A", &encrypted)]))
        .await;
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Unavailable, "unavailable")
    );
    assert!(failure.message.contains("vault.s3.url"), "{failure}");
}

#[tokio::test]
async fn no_key_ring_and_no_key_leaves_its_folder() {
    let server = Server::start(|_| panic!("nothing may be asked")).await;
    let vault = vault(&server.address);
    let encrypted = data_key().encrypt(b"text");
    for ring in [
        "", "..", "../env_2", "env_1/..", "/env_1", "env\0", "env_1/",
    ] {
        let failure = vault
            .decrypt(ring, &items(&[("A", &encrypted)]))
            .await
            .unwrap_err();
        assert_eq!(failure.code, "invalid_argument", "{ring:?}");
    }
    for id in ["..", "../../env_2/dek_1", "a/b", "/etc", "dek\0", "."] {
        let encrypted = SealingKey::new(id, 2).encrypt(b"text");
        let failure = vault
            .decrypt("env_1", &items(&[("A", &encrypted)]))
            .await
            .unwrap_err();
        assert_eq!(failure.code, "invalid_argument", "{id:?}");
    }
    assert!(server.requests().is_empty());
}
