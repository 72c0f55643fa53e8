//! The vault of `tests/connect-go`, built once and told what to do line by line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::OnceCell;
use tokio::time::timeout;

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
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl VaultProcess {
    pub(super) async fn start(listen: &str, bulk: Bulk) -> Self {
        let bulk = match bulk {
            Bulk::Yes => "yes",
            Bulk::Unimplemented => "unimplemented",
            Bulk::Absent => "absent",
        };
        let mut child = Command::new(binary().await)
            .args(["-vault", "-token", TOKEN, "-bulk", bulk, "-listen", listen])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self {
            address: String::new(),
            child,
            orders,
            lines,
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
        self.child.kill().await.unwrap();
    }

    async fn order(&mut self, order: Value) -> Said {
        let line = format!("{order}\n");
        self.orders.write_all(line.as_bytes()).await.unwrap();
        let said = self.read().await;
        assert_eq!(said.event, "done");
        said
    }

    async fn read(&mut self) -> Said {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .unwrap()
            .unwrap();
        serde_json::from_str(&line.expect("the vault must not have ended")).unwrap()
    }
}

async fn binary() -> &'static Path {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    BINARY
        .get_or_init(|| async {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect-go-vault");
            let status = Command::new("go")
                .args(["build", "-o"])
                .arg(&path)
                .arg(".")
                .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/connect-go"))
                .status()
                .await
                .expect("Go must be installed for these tests: https://go.dev/dl");
            assert!(status.success(), "the connect-go vault must build");
            path
        })
        .await
}
