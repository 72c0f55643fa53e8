//! What reaches the log, of krane and of every library below it.

use krane_ports::Vault as _;
use krane_testcontract::vaults::seal::SealingKey;
use krane_vault::RemoteTiming;

use super::{CANARY, items, remote, s3};
use crate::cluster_edge::server::{Answer, Server};
use crate::log::Listening;

/// Token, access key, master key, ciphertext and plaintext (D34).
#[tokio::test]
async fn no_secret_is_logged_at_any_level() {
    let log = Listening::to(tracing::Level::TRACE);
    let encrypted = s3::data_key().encrypt(CANARY.as_bytes());
    let values = items(&[("A", &encrypted)]);

    let answers: [fn() -> Answer; 4] = [
        || s3::object(s3::master_key().wrap(&s3::data_key())),
        || s3::object(SealingKey::new("kek_1", 9).wrap(&s3::data_key())),
        || s3::error(403, "AccessDenied"),
        || s3::error(500, "InternalError"),
    ];
    let mut texts = 0;
    for answer in answers {
        let server = Server::start(move |_| answer()).await;
        let result = s3::vault(&server.address).decrypt("env_1", &values).await;
        texts += usize::from(result.is_ok_and(|texts| texts["A"].expose() == CANARY));
    }
    assert_eq!(texts, 1);

    for status in [200, 400, 401, 500] {
        let echo = format!("{{\"code\":\"internal\",\"message\":\"{encrypted} {CANARY}\"}}");
        let server = Server::start(move |_| Answer::text(status, "application/json", &echo)).await;
        let vault = remote::vault(&server.address, RemoteTiming::default());
        vault.decrypt("env_1", &values).await.unwrap_err();
    }

    let text = log.text();
    assert!(
        text.contains("connected to 127.0.0.1"),
        "nothing was captured"
    );
    let master_key = s3::master_key().master_key_text();
    for secret in [CANARY, &encrypted, &master_key, remote::TOKEN] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
