//! The connect-go server of `tests/connect-go`, built once and told what to do line by line.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use krane_testharness::ConnectGo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::TOKEN;

/// Only a broken peer takes so long.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the server says.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "event")]
    pub(super) kind: String,
    address: String,
    pub(super) method: String,
    pub(super) platform: String,
    pub(super) region: String,
    pub(super) version: u64,
    pub(super) id: String,
    pub(super) authorization: String,
    pub(super) user_agent: String,
    pub(super) protocol: String,
    /// The address of the client's side of the connection.
    pub(super) peer: String,
}

/// A running server; it ends with this.
pub(super) struct Peer {
    program: ConnectGo,
    events: VecDeque<Event>,
    address: String,
}

impl Peer {
    pub(super) async fn start() -> Self {
        let folder = env!("CARGO_TARGET_TMPDIR");
        let program = ConnectGo::start(folder, &["-token", TOKEN]).await.unwrap();
        let mut peer = Self {
            program,
            events: VecDeque::new(),
            address: String::new(),
        };
        let event = peer.read().await;
        assert_eq!(event.kind, "listening");
        peer.address = event.address;
        peer
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next event that is no acknowledgement: `call`, or `gone` for a stream given up.
    pub(super) async fn event(&mut self) -> Event {
        match self.events.pop_front() {
            Some(event) => event,
            None => self.read().await,
        }
    }

    /// Sends a state to all open streams.
    pub(super) async fn push(&mut self, message: &[u8]) {
        self.order(json!({ "do": "push", "message": STANDARD.encode(message) }))
            .await;
    }

    /// Sets the answer to every question.
    pub(super) async fn answer(&mut self, message: &[u8]) {
        self.order(json!({ "do": "answer", "message": STANDARD.encode(message) }))
            .await;
    }

    /// Makes a method fail from now on.
    pub(super) async fn refuse(&mut self, method: &str, code: u32, text: &str) {
        self.order(json!({ "do": "refuse", "method": method, "code": code, "text": text }))
            .await;
    }

    /// Ends all open streams.
    pub(super) async fn end(&mut self, code: u32, text: &str) {
        self.order(json!({ "do": "end", "code": code, "text": text }))
            .await;
    }

    /// Sends GOAWAY, waits a second for what runs, and closes.
    pub(super) async fn go_away(&mut self) {
        self.order(json!({ "do": "goaway" })).await;
    }

    pub(super) async fn kill(&mut self) {
        self.program.kill().await.unwrap();
    }

    /// Stops the process where it is; the kernel goes on accepting for it.
    pub(super) async fn freeze(&self) {
        let id = self.program.id().unwrap().to_string();
        let status = Command::new("kill")
            .args(["-STOP", &id])
            .status()
            .await
            .unwrap();
        assert!(status.success());
    }

    async fn order(&mut self, order: Value) {
        self.program.tell(&order).await.unwrap();
        loop {
            let event = self.read().await;
            if event.kind == "done" {
                return;
            }
            self.events.push_back(event);
        }
    }

    async fn read(&mut self) -> Event {
        self.program.hear(PATIENCE).await.unwrap()
    }
}
