//! What is counted, and what is built from settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{pending, poll_immediate};
use krane_domain::secret::Secret;
use krane_ports::{Vault, VaultFailure};
use parking_lot::Mutex;
use tonic::Code;

use super::{Observed, VAULT_CODES, VaultMetrics, VaultObserver, from_settings, refused, shown};

#[derive(Default)]
struct Counted(Mutex<Vec<&'static str>>);

impl VaultObserver for Counted {
    fn request(&self, code: &'static str) {
        assert!(VAULT_CODES.contains(&code), "{code}");
        self.0.lock().push(code);
    }
}

/// Answers by the name of the key ring.
struct Scripted;

#[async_trait]
impl Vault for Scripted {
    async fn decrypt(
        &self,
        key_ring: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        match key_ring {
            "good" => Ok(BTreeMap::new()),
            "bad" => Err(refused(Code::Internal, "it will not")),
            _ => pending().await,
        }
    }
}

#[tokio::test]
async fn every_ending_is_counted_once() {
    let observer = Arc::new(Counted::default());
    let vault = Observed {
        vault: Scripted,
        observer: Arc::clone(&observer) as Arc<dyn VaultObserver>,
    };
    let items = BTreeMap::new();
    assert!(vault.decrypt("good", &items).await.is_ok());
    assert!(vault.decrypt("bad", &items).await.is_err());
    {
        let mut hanging = vault.decrypt("hang", &items);
        assert!(poll_immediate(&mut hanging).await.is_none());
        assert_eq!(*observer.0.lock(), ["ok", "internal"]);
    }
    assert_eq!(*observer.0.lock(), ["ok", "internal", "canceled"]);
}

#[test]
fn without_settings_there_is_no_vault() {
    assert!(from_settings(None, Arc::new(())).unwrap().is_none());
}

#[test]
fn what_tenants_name_stays_short_and_on_one_line() {
    assert_eq!(shown("A\n\"B\""), r#""A\n\"B\"""#);
    assert_eq!(shown(&"x".repeat(1000)).len(), 66);
    assert!(
        !refused(Code::Internal, "a\nb\x1b[31m")
            .message
            .contains(char::is_control)
    );
}

#[test]
fn every_code_has_a_counter_from_the_start() {
    let registry = prometheus::Registry::new();
    let metrics = VaultMetrics::register(&registry).unwrap();
    metrics.request("unavailable");
    let families = registry.gather();
    assert_eq!(families[0].name(), "krane_vault_requests_total");
    assert_eq!(families[0].get_metric().len(), VAULT_CODES.len());
    let sum: f64 = families[0]
        .get_metric()
        .iter()
        .map(|metric| metric.get_counter().get_value())
        .sum();
    assert!((sum - 1.0).abs() < f64::EPSILON);
}
