//! An S3 server with a folder of its own.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use super::super::PATIENCE;

pub(super) const BUCKET: &str = "keys";
pub(super) const KEY_ID: &str = "krane-id";
pub(super) const SECRET: &str = "secret-of-the-store";

/// A running server; it ends with this.
pub(super) struct S3Process {
    pub(super) port: u16,
    folder: TempDir,
    child: Child,
}

impl S3Process {
    pub(super) async fn start(port: u16) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let child = spawn(port, &folder).await;
        Self {
            port,
            folder,
            child,
        }
    }

    /// Stores an object as the server itself would.
    pub(super) fn put(&self, path: &str, body: &[u8]) {
        let file = self.folder.path().join(BUCKET).join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, body).unwrap();
    }

    pub(super) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    pub(super) async fn revive(&mut self) {
        self.child = spawn(self.port, &self.folder).await;
    }
}

/// Starts the server and waits until it listens.
async fn spawn(port: u16, folder: &TempDir) -> Child {
    let program = std::env::var("KRANE_S3_SERVER")
        .expect("KRANE_S3_SERVER must name the s3s-fs program: run scripts/peers");
    let child = Command::new(program)
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--access-key", KEY_ID, "--secret-key", SECRET])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut pace = interval(Duration::from_millis(20));
    let listens = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            pace.tick().await;
        }
    };
    timeout(PATIENCE, listens).await.unwrap();
    child
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
