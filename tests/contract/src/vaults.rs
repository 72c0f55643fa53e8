//! What every vault does, whoever plays it.
//!
//! [`vault_contract!`](crate::vault_contract) makes one test of each check.

pub mod seal;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use krane_ports::{Vault, VaultFailure, VaultFailureKind};
use tokio::time::timeout;

use crate::PATIENCE;

/// Who looks after the vault: what krane cannot do.
#[async_trait]
pub trait Owner: Send + Sync {
    /// Encrypts a text for a key ring.
    async fn encrypt(&self, key_ring: &str, text: &str) -> String;
    /// Nobody answers any more.
    async fn stop(&self);
    /// Somebody answers again, and knows everything that was encrypted.
    async fn start(&self);
}

/// A vault, seen by krane and by its owner.
pub struct World {
    pub vault: Arc<dyn Vault>,
    pub owner: Box<dyn Owner>,
}

/// One test of each check; `$world` makes a [`World`].
#[macro_export]
macro_rules! vault_contract {
    (#[$test:meta] $world:path) => {
        $crate::vault_contract! { #[$test] $world:
            every_value_comes_back_under_its_name
            without_values_nobody_is_asked
            one_bad_value_fails_the_whole_call
            a_value_of_another_key_ring_stays_closed
            garbage_is_refused_and_never_repeated
            many_callers_at_once_get_their_own
            an_outage_passes
        }
    };
    (#[$test:meta] $world:path: $($check:ident)*) => {
        $(
            #[$test]
            async fn $check() {
                $crate::vaults::$check($world().await).await;
            }
        )*
    };
}

impl World {
    /// Encrypts each of these for a key ring.
    pub async fn encrypt(
        &self,
        key_ring: &str,
        texts: &[(&str, &str)],
    ) -> BTreeMap<String, String> {
        let mut items = BTreeMap::new();
        for (name, text) in texts {
            let encrypted = self.owner.encrypt(key_ring, text).await;
            items.insert((*name).to_owned(), encrypted);
        }
        items
    }

    /// What the vault makes of these, as plain text.
    pub async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, VaultFailure> {
        let texts = timeout(PATIENCE, self.vault.decrypt(key_ring, items)).await;
        Ok(texts
            .unwrap()?
            .into_iter()
            .map(|(name, text)| (name, text.expose().to_owned()))
            .collect())
    }

    async fn refused(&self, key_ring: &str, items: &BTreeMap<String, String>) -> VaultFailure {
        let failure = self.decrypt(key_ring, items).await.unwrap_err();
        assert_eq!(failure.kind, VaultFailureKind::Refused, "{failure}");
        for encrypted in items.values().filter(|encrypted| encrypted.len() > 3) {
            let told = format!("{failure} {failure:?}");
            assert!(!told.contains(encrypted), "a ciphertext in {told}");
        }
        failure
    }
}

pub async fn every_value_comes_back_under_its_name(world: World) {
    let long = "x".repeat(100_000);
    let texts = [
        ("EMPTY", ""),
        ("LINES", "a\nb\r\n\0"),
        ("UNICODE", "Grüße, 世界 🦀"),
        ("LONG", &*long),
        ("a name that is none", "1"),
        ("", "without a name"),
        ("SAME", "1"),
    ];
    let items = world.encrypt("env_1", &texts).await;
    let expected: BTreeMap<_, _> = texts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    assert_eq!(world.decrypt("env_1", &items).await.unwrap(), expected);
    assert_eq!(world.decrypt("env_1", &items).await.unwrap(), expected);
}

pub async fn without_values_nobody_is_asked(world: World) {
    world.owner.stop().await;
    let texts = world.decrypt("env_1", &BTreeMap::new()).await.unwrap();
    assert!(texts.is_empty());
}

pub async fn one_bad_value_fails_the_whole_call(world: World) {
    let names: Vec<String> = (0..40).map(|number| format!("NAME_{number}")).collect();
    let texts: Vec<_> = names.iter().map(|name| (name.as_str(), "good")).collect();
    let mut items = world.encrypt("env_1", &texts).await;
    let bad = items.get_mut("NAME_31").unwrap();
    *bad = altered(bad);
    world.refused("env_1", &items).await;
    items.remove("NAME_31");
    assert_eq!(world.decrypt("env_1", &items).await.unwrap().len(), 39);
}

pub async fn a_value_of_another_key_ring_stays_closed(world: World) {
    let mine = world.encrypt("env_1", &[("A", "mine")]).await;
    let others = world.encrypt("env_2", &[("A", "others")]).await;
    world.refused("env_1", &others).await;
    world.refused("env_2", &mine).await;
    world.refused("env_3", &mine).await;
    assert_eq!(world.decrypt("env_1", &mine).await.unwrap()["A"], "mine");
}

pub async fn garbage_is_refused_and_never_repeated(world: World) {
    let good = world.owner.encrypt("env_1", "good").await;
    let half = good[..good.len() / 2].to_owned();
    let long = "QUJD".repeat(10_000);
    for garbage in [
        "",
        "%%%% canary-5d41402abc4b2a76",
        "canary/5d41402abc4b2a76",
        "AAAA",
        &half,
        &long,
        &format!("{good}="),
    ] {
        let items = BTreeMap::from([("A".to_owned(), garbage.to_owned())]);
        world.refused("env_1", &items).await;
    }
}

pub async fn many_callers_at_once_get_their_own(world: World) {
    let mut asked = Vec::new();
    for number in 0..50 {
        let key_ring = format!("env_{}", number % 7);
        let text = format!("text {number}");
        let items = world.encrypt(&key_ring, &[("A", text.as_str())]).await;
        asked.push((key_ring, text, items));
    }
    let answers = asked.iter().map(|(key_ring, text, items)| async {
        let texts = world.decrypt(key_ring, items).await.unwrap();
        assert_eq!(texts["A"], *text);
    });
    join_all(answers).await;
}

pub async fn an_outage_passes(world: World) {
    let before = world.encrypt("env_1", &[("A", "before")]).await;
    let other = world.encrypt("env_2", &[("A", "other")]).await;
    assert_eq!(
        world.decrypt("env_1", &before).await.unwrap()["A"],
        "before"
    );
    world.owner.stop().await;
    for _ in 0..3 {
        let failure = world.decrypt("env_2", &other).await.unwrap_err();
        assert_eq!(failure.kind, VaultFailureKind::Unavailable, "{failure}");
    }
    world.owner.start().await;
    // A connection of before the outage must not cost a call.
    assert_eq!(world.decrypt("env_2", &other).await.unwrap()["A"], "other");
    assert_eq!(
        world.decrypt("env_1", &before).await.unwrap()["A"],
        "before"
    );
}

/// The same ciphertext with one character in the middle replaced.
pub fn altered(encrypted: &str) -> String {
    let middle = encrypted.len() / 2;
    let other = if encrypted.as_bytes()[middle] == b'A' {
        "B"
    } else {
        "A"
    };
    format!(
        "{}{other}{}",
        &encrypted[..middle],
        &encrypted[middle + 1..]
    )
}
