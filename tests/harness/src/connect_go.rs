//! The program of `tests/connect-go`, built once in a process and told what to do line by line.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::OnceCell,
    time::timeout,
};

use crate::{Failure, Outcome};

static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();

/// A running program; it ends with this.
#[derive(Debug)]
pub struct ConnectGo {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl ConnectGo {
    /// Starts it with these arguments. It is built into `folder`, the `CARGO_TARGET_TMPDIR` of the
    /// tests that use it.
    pub async fn start(folder: &str, arguments: &[&str]) -> Outcome<Self> {
        let program = PROGRAM.get_or_try_init(|| build(Path::new(folder))).await?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let closed = || Failure::new("a pipe of connect-go is closed");
        let orders = child.stdin.take().ok_or_else(closed)?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(closed)?).lines();
        Ok(Self {
            child,
            orders,
            lines,
        })
    }

    /// Tells it to do something.
    pub async fn tell(&mut self, order: &Value) -> Outcome {
        self.orders
            .write_all(format!("{order}\n").as_bytes())
            .await?;
        Ok(())
    }

    /// The next thing that it says, within this time.
    pub async fn hear<T: DeserializeOwned>(&mut self, limit: Duration) -> Outcome<T> {
        let line = timeout(limit, self.lines.next_line()).await;
        let line = line.map_err(|_| Failure::new(format!("connect-go is silent for {limit:?}")))?;
        let line = line?.ok_or_else(|| Failure::new("connect-go has ended"))?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends it at once.
    pub async fn kill(&mut self) -> Outcome {
        self.child.kill().await?;
        Ok(())
    }
}

async fn build(folder: &Path) -> Outcome<PathBuf> {
    let program = folder.join("connect-go");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connect-go");
    let status = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .env("GOWORK", "off")
        .status()
        .await
        .map_err(|error| {
            Failure::new(format!(
                "Go must be installed for these tests: https://go.dev/dl ({error})"
            ))
        })?;
    if status.success() {
        Ok(program)
    } else {
        Err(Failure::new("the connect-go program must build"))
    }
}
