//! The embedded vault over a real S3 server: s3s-fs, a process with a folder, which checks every
//! signature.

mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use krane_ports::{Vault as _, VaultFailureKind};
use krane_settings::{LoadInput, Loaded, Settings, Vault};
use krane_testcontract::vault_contract;
use krane_testcontract::vaults::seal::SealingKey;
use krane_testcontract::vaults::{Owner, World};
use krane_vault::{EmbeddedTiming, EmbeddedVault};
use process::{BUCKET, KEY_ID, S3Process, SECRET, free_port};
use tokio::sync::Mutex;

use super::items;

fn master_key() -> SealingKey {
    SealingKey::new("kek_1", 1)
}

fn settings(port: u16, bucket: &str, secret: &str) -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("krane.toml");
    let lines = format!(
        "region = 'us-east-1.aws'\n[control]\nurl = 'http://control'\ntoken = 't'\n[vault]\n\
         master_keys = ['{}']\n[vault.s3]\nurl = 'http://127.0.0.1:{port}'\nbucket = '{bucket}'\n\
         access_key_id = '{KEY_ID}'\n{secret}\n",
        master_key().master_key_text()
    );
    std::fs::write(&file, lines).unwrap();
    let input = LoadInput {
        files: vec![file],
        ..LoadInput::default()
    };
    Loaded::load(&input).unwrap().settings
}

fn vault_of(settings: Settings) -> EmbeddedVault {
    let Some(Vault::Embedded { master_keys, s3 }) = settings.vault else {
        panic!("an embedded vault was configured");
    };
    let timing = EmbeddedTiming {
        read: Duration::from_secs(2),
        ..EmbeddedTiming::default()
    };
    EmbeddedVault::new(master_keys, &s3, timing).unwrap()
}

fn vault(port: u16) -> EmbeddedVault {
    vault_of(settings(
        port,
        BUCKET,
        &format!("access_key_secret = '{SECRET}'"),
    ))
}

#[tokio::test]
async fn two_hundred_values_are_decrypted() {
    let process = S3Process::start(free_port()).await;
    let data_key = SealingKey::new("dek_1", 2);
    process.put("keyring/env_1/dek_1", &master_key().wrap(&data_key));
    let values: BTreeMap<_, _> = (0..200)
        .map(|number| {
            (
                format!("N{number}"),
                data_key.encrypt(format!("{number}").as_bytes()),
            )
        })
        .collect();
    let vault = vault(process.port);
    for _ in 0..2 {
        let start = Instant::now();
        let texts = vault.decrypt("env_1", &values).await.unwrap();
        println!("200 values of one key ring: {:?}", start.elapsed());
        assert_eq!(texts["N123"].expose(), "123");
    }
}

#[tokio::test]
async fn what_the_store_refuses_is_told_apart() {
    let process = S3Process::start(free_port()).await;
    let data_key = SealingKey::new("dek_1", 2);
    process.put("keyring/env_1/dek_1", &master_key().wrap(&data_key));
    let values = items(&[("A", &data_key.encrypt(b"text"))]);
    let check = async |vault: EmbeddedVault, ring: &str, code: &str| {
        let failure = vault.decrypt(ring, &values).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.code),
            (VaultFailureKind::Refused, code),
            "{failure}"
        );
    };
    check(vault(process.port), "env_2", "not_found").await;
    let secret = format!("access_key_secret = '{SECRET}'");
    let other_bucket = vault_of(settings(process.port, "another", &secret));
    // This server says of a missing bucket that the object is missing.
    check(other_bucket, "env_1", "not_found").await;
    let wrong = vault_of(settings(
        process.port,
        BUCKET,
        "access_key_secret = 'wrong'",
    ));
    check(wrong, "env_1", "permission_denied").await;

    process.put("keyring/env_3/dek_1", &master_key().wrap(&data_key)[..60]);
    check(vault(process.port), "env_3", "data_loss").await;
    process.put(
        "keyring/env_4/dek_1",
        &SealingKey::new("kek_2", 1).wrap(&data_key),
    );
    check(vault(process.port), "env_4", "failed_precondition").await;
}

#[tokio::test]
async fn a_secret_that_is_replaced_is_used_at_once() {
    let process = S3Process::start(free_port()).await;
    let data_key = SealingKey::new("dek_1", 2);
    process.put("keyring/env_1/dek_1", &master_key().wrap(&data_key));
    let values = items(&[("A", &data_key.encrypt(b"text"))]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong").unwrap();
    let secret = format!("access_key_secret_file = '{}'", file.path().display());
    let vault = vault_of(settings(process.port, BUCKET, &secret));
    assert!(vault.decrypt("env_1", &values).await.is_err());
    std::fs::write(file.path(), SECRET).unwrap();
    assert!(vault.decrypt("env_1", &values).await.is_ok());
}

#[tokio::test]
async fn a_survey_finds_all_of_more_keys_than_a_page_has() {
    let process = S3Process::start(free_port()).await;
    let data_key = SealingKey::new("dek_1", 2);
    for number in 0..1100 {
        let path = format!("keyring/env_{number}/dek_1");
        process.put(&path, &master_key().wrap(&data_key));
    }
    let lost = SealingKey::new("kek_lost", 9);
    process.put("keyring/env_zzz/dek_1", &lost.wrap(&data_key));
    let start = Instant::now();
    let survey = vault(process.port).survey().await.unwrap();
    println!(
        "a survey of {} stored keys: {:?}",
        survey.objects(),
        start.elapsed()
    );
    assert_eq!(survey.opened["kek_1"], 1100);
    assert_eq!(survey.locked[0].object, "keyring/env_zzz/dek_1");
}

/// Encrypts with a key for each key ring, below a store that can be killed.
struct Sealer {
    process: Mutex<Option<S3Process>>,
    rings: Mutex<BTreeMap<String, SealingKey>>,
    seed: AtomicU8,
}

#[async_trait]
impl Owner for Sealer {
    async fn encrypt(&self, key_ring: &str, text: &str) -> String {
        let mut rings = self.rings.lock().await;
        if !rings.contains_key(key_ring) {
            let seed = self.seed.fetch_add(1, Ordering::Relaxed);
            let data_key = SealingKey::new("dek_1", seed);
            let process = self.process.lock().await;
            let path = format!("keyring/{key_ring}/dek_1");
            process
                .as_ref()
                .unwrap()
                .put(&path, &master_key().wrap(&data_key));
            rings.insert(key_ring.to_owned(), data_key);
        }
        rings[key_ring].encrypt(text.as_bytes())
    }

    async fn stop(&self) {
        self.process.lock().await.as_mut().unwrap().kill().await;
    }

    async fn start(&self) {
        self.process.lock().await.as_mut().unwrap().revive().await;
    }
}

async fn world() -> World {
    let process = S3Process::start(free_port()).await;
    World {
        vault: Arc::new(vault(process.port)),
        owner: Box::new(Sealer {
            process: Mutex::new(Some(process)),
            rings: Mutex::default(),
            seed: AtomicU8::new(2),
        }),
    }
}

vault_contract! { #[tokio::test] world }
