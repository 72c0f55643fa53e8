//! The remote vault against a vault made with connect-go, the library of the original one:
//! HTTP/1.1 only.

mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use krane_ports::{Vault as _, VaultFailureKind};
use krane_settings::SecretSource;
use krane_testcontract::vault_contract;
use krane_testcontract::vaults::{Owner, World};
use krane_vault::{RemoteTiming, RemoteVault};
use process::{Bulk, TOKEN, VaultProcess};
use tokio::sync::Mutex;

use super::items;

const ANY: &str = "127.0.0.1:0";

fn vault(address: &str, token: &str) -> RemoteVault {
    let url = format!("http://{address}").parse().unwrap();
    RemoteVault::new(
        &url,
        Some(SecretSource::fixed(token)),
        RemoteTiming::default(),
    )
    .unwrap()
}

/// Two hundred variables, as they are encrypted and as they are meant.
fn variables() -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let numbered = |text: &str| {
        let pairs = (0..200).map(|number| (format!("NAME_{number}"), format!("{text} {number}")));
        pairs.collect::<BTreeMap<_, _>>()
    };
    (numbered("encrypted"), numbered("plain"))
}

/// How long 200 variables take at 100 ms for each call, the first time and the second, and which
/// calls it took.
async fn measured(bulk: Bulk) -> (Vec<Duration>, BTreeMap<String, usize>) {
    let mut process = VaultProcess::start(ANY, bulk).await;
    let (encrypted, plain) = variables();
    let table = encrypted.values().cloned().zip(plain.values().cloned());
    process.learn("env_1", &table.collect()).await;
    process.latency(Duration::from_millis(100)).await;
    let vault = vault(&process.address, TOKEN);
    let mut times = Vec::new();
    for _ in 0..2 {
        let start = Instant::now();
        let texts = vault.decrypt("env_1", &encrypted).await.unwrap();
        times.push(start.elapsed());
        let texts: BTreeMap<_, _> = texts
            .into_iter()
            .map(|(name, text)| (name, text.expose().to_owned()))
            .collect();
        assert_eq!(texts, plain);
    }
    let counts = process.calls().await;
    println!(
        "200 variables at 100 ms, {bulk:?}: {times:?}, {:?}, {} connections, {:?}",
        counts.calls, counts.connections, counts.protocols
    );
    let http1: BTreeMap<_, _> = [("HTTP/1.1".to_owned(), counts.calls.values().sum())].into();
    assert_eq!(counts.protocols, http1);
    assert!(counts.connections <= 17, "{}", counts.connections);
    (times, counts.calls)
}

/// unkeyed/unkey 4b7f6d2cf8 (A57).
#[tokio::test]
async fn two_hundred_variables_take_one_call() {
    let (times, calls) = measured(Bulk::Yes).await;
    assert!(
        times.iter().all(|time| *time < Duration::from_millis(400)),
        "{times:?}"
    );
    assert_eq!(calls, BTreeMap::from([("DecryptBulk".to_owned(), 2)]));
}

/// unkeyed/unkey 4b7f6d2cf8 (A57).
#[tokio::test]
async fn two_hundred_variables_of_an_old_vault_take_less_than_two_seconds() {
    for bulk in [Bulk::Unimplemented, Bulk::Absent] {
        let (times, calls) = measured(bulk).await;
        assert!(
            times.iter().all(|time| *time < Duration::from_secs(2)),
            "{times:?}"
        );
        let expected = [("Decrypt".to_owned(), 400), ("DecryptBulk".to_owned(), 1)];
        assert_eq!(calls, BTreeMap::from(expected));
    }
}

#[tokio::test]
async fn what_the_vault_refuses_is_told_apart_from_what_it_cannot() {
    let mut process = VaultProcess::start(ANY, Bulk::Yes).await;
    process
        .learn("env_1", &items(&[("encrypted", "plain")]))
        .await;
    let good = items(&[("A", "encrypted")]);
    let vault_here = vault(&process.address, TOKEN);
    assert!(vault_here.liveness().await.is_ok());
    assert_eq!(
        vault_here.decrypt("env_1", &good).await.unwrap()["A"].expose(),
        "plain"
    );

    let intruder = vault(&process.address, "another-token");
    let failure = intruder.decrypt("env_1", &good).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Refused, "unauthenticated")
    );
    assert!(intruder.liveness().await.is_ok());

    let bad = items(&[("A", "encrypted"), ("B", "canary-5d41402abc4b2a76")]);
    let failure = vault_here.decrypt("env_1", &bad).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Refused, "internal")
    );
    assert!(!failure.message.contains("canary"), "{failure}");

    for (number, code, kind) in [
        (14, "unavailable", VaultFailureKind::Unavailable),
        (8, "resource_exhausted", VaultFailureKind::Unavailable),
        (4, "deadline_exceeded", VaultFailureKind::Unavailable),
        (7, "permission_denied", VaultFailureKind::Refused),
        (2, "unknown", VaultFailureKind::Refused),
    ] {
        process.refuse(number).await;
        let failure = vault_here.decrypt("env_1", &good).await.unwrap_err();
        assert_eq!((failure.kind, failure.code), (kind, code), "{failure}");
    }
    process.refuse(0).await;
    assert!(vault_here.decrypt("env_1", &good).await.is_ok());
}

#[tokio::test]
async fn a_slow_vault_is_given_up() {
    let mut process = VaultProcess::start(ANY, Bulk::Yes).await;
    process.latency(Duration::from_secs(3600)).await;
    let url = format!("http://{}", process.address).parse().unwrap();
    let timing = RemoteTiming {
        call: Duration::from_millis(300),
        ..RemoteTiming::default()
    };
    let vault = RemoteVault::new(&url, Some(SecretSource::fixed(TOKEN)), timing).unwrap();
    let failure = vault
        .decrypt("env_1", &items(&[("A", "x")]))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (VaultFailureKind::Unavailable, "deadline_exceeded")
    );
}

/// Remembers what it encrypted, for the process that follows one that was killed.
struct Keeper {
    address: String,
    known: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    process: Mutex<Option<VaultProcess>>,
}

#[async_trait]
impl Owner for Keeper {
    async fn encrypt(&self, key_ring: &str, text: &str) -> String {
        let mut known = self.known.lock().await;
        let number: usize = known.values().map(BTreeMap::len).sum();
        let encrypted = format!("encrypted/{number}+{key_ring}==");
        let added = BTreeMap::from([(encrypted.clone(), text.to_owned())]);
        known
            .entry(key_ring.to_owned())
            .or_default()
            .extend(added.clone());
        let mut process = self.process.lock().await;
        process.as_mut().unwrap().learn(key_ring, &added).await;
        encrypted
    }

    async fn stop(&self) {
        let process = self.process.lock().await.take();
        process.unwrap().kill().await;
    }

    async fn start(&self) {
        let mut process = VaultProcess::start(&self.address, Bulk::Yes).await;
        for (key_ring, table) in &*self.known.lock().await {
            process.learn(key_ring, table).await;
        }
        *self.process.lock().await = Some(process);
    }
}

async fn world() -> World {
    let process = VaultProcess::start(ANY, Bulk::Yes).await;
    let address = process.address.clone();
    World {
        vault: Arc::new(vault(&address, TOKEN)),
        owner: Box::new(Keeper {
            address,
            known: Mutex::default(),
            process: Mutex::new(Some(process)),
        }),
    }
}

vault_contract! { #[tokio::test] world }
