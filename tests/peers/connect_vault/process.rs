//! The vault of `tests/connect-go`, built once and told what to do line by line.

use std::collections::BTreeMap;
use std::time::Duration;

use krane_testharness::ConnectGo;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::PATIENCE;

pub(super) const TOKEN: &str = "vault-token";

/// Whether the vault decrypts many values in one call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bulk {
    Yes,
    /// It says that it does not.
    Unimplemented,
    /// It is from before that call: a bare 404.
    Absent,
}

/// What the vault says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    event: String,
    address: String,
    pub(super) calls: BTreeMap<String, usize>,
    pub(super) protocols: BTreeMap<String, usize>,
    pub(super) connections: usize,
}

/// A running vault; it ends with this.
pub(super) struct VaultProcess {
    pub(super) address: String,
    program: ConnectGo,
}

impl VaultProcess {
    pub(super) async fn start(listen: &str, bulk: Bulk) -> Self {
        let bulk = match bulk {
            Bulk::Yes => "yes",
            Bulk::Unimplemented => "unimplemented",
            Bulk::Absent => "absent",
        };
        let arguments = ["-vault", "-token", TOKEN, "-bulk", bulk, "-listen", listen];
        let program = ConnectGo::start(env!("CARGO_TARGET_TMPDIR"), &arguments).await;
        let mut process = Self {
            address: String::new(),
            program: program.unwrap(),
        };
        let said = process.read().await;
        assert_eq!(said.event, "listening");
        process.address = said.address;
        process
    }

    /// Adds ciphertexts with their plaintexts to what a key ring can decrypt.
    pub(super) async fn learn(&mut self, key_ring: &str, table: &BTreeMap<String, String>) {
        self.order(json!({ "do": "learn", "key_ring": key_ring, "items": table }))
            .await;
    }

    /// Sets how long each call takes.
    pub(super) async fn latency(&mut self, latency: Duration) {
        let millis = u64::try_from(latency.as_millis()).unwrap();
        self.order(json!({ "do": "latency", "millis": millis }))
            .await;
    }

    /// Refuses every call with this code; 0 for none.
    pub(super) async fn refuse(&mut self, code: u32) {
        self.order(json!({ "do": "refuse", "code": code })).await;
    }

    /// What was called since this was asked last.
    pub(super) async fn calls(&mut self) -> Said {
        self.order(json!({ "do": "calls" })).await
    }

    pub(super) async fn kill(mut self) {
        self.program.kill().await.unwrap();
    }

    async fn order(&mut self, order: Value) -> Said {
        self.program.tell(&order).await.unwrap();
        let said = self.read().await;
        assert_eq!(said.event, "done");
        said
    }

    async fn read(&mut self) -> Said {
        self.program.hear(PATIENCE).await.unwrap()
    }
}
