//! The embedded vault over a bucket in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use krane_ports::{Vault as _, VaultFailure, VaultFailureKind};
use krane_settings::SecretSource;
use krane_testcontract::vault_contract;
use krane_testcontract::vaults::seal::SealingKey;
use krane_testcontract::vaults::{Owner, World};
use krane_vault::{EmbeddedTiming, EmbeddedVault};
use parking_lot::Mutex;

use super::items;
use super::memory::Bucket;

fn over(bucket: &Bucket, master_keys: SecretSource) -> EmbeddedVault {
    let objects = Arc::new(bucket.clone());
    EmbeddedVault::over(master_keys, objects, EmbeddedTiming::default()).unwrap()
}

fn list(keys: &[&SealingKey]) -> String {
    let texts: Vec<_> = keys.iter().map(|key| key.master_key_text()).collect();
    texts.join(",")
}

/// A bucket with a data key for each of these key rings, all encrypted with one master key.
async fn bucket(master_key: &SealingKey, rings: &[&str]) -> Bucket {
    let bucket = Bucket::default();
    for (seed, ring) in (10..).zip(rings) {
        let stored = master_key.wrap(&SealingKey::new("dek_1", seed));
        bucket.put(&format!("keyring/{ring}/dek_1"), stored).await;
    }
    bucket
}

#[tokio::test]
async fn many_values_of_one_key_ring_cost_one_read() {
    let master_key = SealingKey::new("kek_1", 1);
    let bucket = bucket(&master_key, &["env_1"]).await;
    let vault = over(&bucket, SecretSource::fixed(&list(&[&master_key])));
    let data_key = SealingKey::new("dek_1", 10);
    let items: BTreeMap<_, _> = (0..200)
        .map(|number| {
            (
                format!("N{number}"),
                data_key.encrypt(format!("{number}").as_bytes()),
            )
        })
        .collect();
    let asking = (0..20).map(|_| vault.decrypt("env_1", &items));
    for texts in futures::future::join_all(asking).await {
        assert_eq!(texts.unwrap()["N150"].expose(), "150");
    }
    assert_eq!(bucket.reads(), 1);
}

#[tokio::test]
async fn an_outage_of_the_store_stops_nobody_whose_key_is_known() {
    let master_key = SealingKey::new("kek_1", 1);
    let bucket = bucket(&master_key, &["env_1", "env_2"]).await;
    let objects = Arc::new(bucket.clone());
    let timing = EmbeddedTiming {
        fresh: std::time::Duration::ZERO,
        ..EmbeddedTiming::default()
    };
    let master_keys = SecretSource::fixed(&list(&[&master_key]));
    let vault = EmbeddedVault::over(master_keys, objects, timing).unwrap();
    let known = items(&[("A", &SealingKey::new("dek_1", 10).encrypt(b"known"))]);
    let other = items(&[("A", &SealingKey::new("dek_1", 11).encrypt(b"other"))]);
    vault.decrypt("env_1", &known).await.unwrap();
    bucket.go_away(true);
    bucket.reads();
    for _ in 0..3 {
        assert_eq!(
            vault.decrypt("env_1", &known).await.unwrap()["A"].expose(),
            "known"
        );
    }
    assert_eq!(bucket.reads(), 1);
    let failure = vault.decrypt("env_2", &other).await.unwrap_err();
    assert_eq!(failure.kind, VaultFailureKind::Unavailable);
    bucket.go_away(false);
    assert_eq!(
        vault.decrypt("env_2", &other).await.unwrap()["A"].expose(),
        "other"
    );
}

#[tokio::test]
async fn a_deleted_key_is_not_used_once_it_is_looked_at_again() {
    let master_key = SealingKey::new("kek_1", 1);
    let bucket = bucket(&master_key, &["env_1"]).await;
    let timing = EmbeddedTiming {
        fresh: std::time::Duration::ZERO,
        ..EmbeddedTiming::default()
    };
    let master_keys = SecretSource::fixed(&list(&[&master_key]));
    let vault = EmbeddedVault::over(master_keys, Arc::new(bucket.clone()), timing).unwrap();
    let items = items(&[("A", &SealingKey::new("dek_1", 10).encrypt(b"text"))]);
    vault.decrypt("env_1", &items).await.unwrap();
    bucket.remove("keyring/env_1/dek_1").await;
    assert_eq!(
        vault.decrypt("env_1", &items).await.unwrap_err().code,
        "not_found"
    );
    bucket.go_away(true);
    assert_eq!(
        vault.decrypt("env_1", &items).await.unwrap_err().code,
        "unavailable"
    );
}

#[tokio::test]
async fn master_keys_change_while_krane_runs() {
    let (old, new) = (SealingKey::new("kek_old", 1), SealingKey::new("kek_new", 2));
    let bucket = bucket(&old, &["env_1"]).await;
    let data_key = SealingKey::new("dek_1", 10);
    let items = items(&[("A", &data_key.encrypt(b"text"))]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), list(&[&old])).unwrap();
    let vault = over(&bucket, SecretSource::file(file.path()).unwrap());
    let decrypt = async || -> Result<(), VaultFailure> {
        let texts = vault.decrypt("env_1", &items).await?;
        assert_eq!(texts["A"].expose(), "text");
        Ok(())
    };
    decrypt().await.unwrap();

    std::fs::write(file.path(), list(&[&old, &new])).unwrap();
    bucket.put("keyring/env_1/dek_1", new.wrap(&data_key)).await;
    decrypt().await.unwrap();

    std::fs::write(file.path(), "half a key").unwrap();
    decrypt().await.unwrap();

    std::fs::write(file.path(), list(&[&old])).unwrap();
    let failure = decrypt().await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Refused, "failed_precondition")
    );
    assert!(failure.message.contains("kek_new"), "{failure}");

    std::fs::write(file.path(), list(&[&new])).unwrap();
    decrypt().await.unwrap();
}

#[tokio::test]
async fn a_survey_counts_what_each_master_key_opens() {
    let (mine, idle) = (SealingKey::new("kek_1", 1), SealingKey::new("kek_idle", 2));
    let bucket = bucket(&mine, &["env_1", "env_2", "env_3"]).await;
    let lost = SealingKey::new("kek_lost", 3);
    bucket
        .put(
            "keyring/env_4/dek_1",
            lost.wrap(&SealingKey::new("dek_1", 4)),
        )
        .await;
    bucket.put("keyring/env_5/dek_1", b"garbage".to_vec()).await;
    bucket
        .put("elsewhere/env_6/dek_1", b"garbage".to_vec())
        .await;
    let vault = over(&bucket, SecretSource::fixed(&list(&[&mine, &idle])));
    let survey = vault.survey().await.unwrap();
    assert_eq!(survey.objects(), 5);
    assert!(!survey.is_calm());
    let opened = BTreeMap::from([("kek_1".to_owned(), 3), ("kek_idle".to_owned(), 0)]);
    assert_eq!(survey.opened, opened);
    assert_eq!(survey.locked[0].object, "keyring/env_4/dek_1");
    assert_eq!(survey.locked[0].master_key, "kek_lost");
    assert_eq!(survey.damaged[0].object, "keyring/env_5/dek_1");
}

/// Encrypts for each key ring with a key of its own, all of one id.
struct Sealer {
    bucket: Bucket,
    master_key: SealingKey,
    rings: Mutex<BTreeMap<String, SealingKey>>,
    seed: AtomicU8,
}

#[async_trait]
impl Owner for Sealer {
    async fn encrypt(&self, key_ring: &str, text: &str) -> String {
        let data_key = self
            .rings
            .lock()
            .entry(key_ring.to_owned())
            .or_insert_with(|| SealingKey::new("dek_1", self.seed.fetch_add(1, Ordering::Relaxed)))
            .clone();
        let stored = self.master_key.wrap(&data_key);
        self.bucket
            .put(&format!("keyring/{key_ring}/dek_1"), stored)
            .await;
        data_key.encrypt(text.as_bytes())
    }

    async fn stop(&self) {
        self.bucket.go_away(true);
    }

    async fn start(&self) {
        self.bucket.go_away(false);
    }
}

async fn world() -> World {
    let (bucket, master_key) = (Bucket::default(), SealingKey::new("kek_1", 1));
    let vault = over(&bucket, SecretSource::fixed(&list(&[&master_key])));
    World {
        vault: Arc::new(vault),
        owner: Box::new(Sealer {
            bucket,
            master_key,
            rings: Mutex::default(),
            seed: AtomicU8::new(2),
        }),
    }
}

vault_contract! { #[tokio::test] world }
