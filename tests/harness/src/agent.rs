//! krane as a process.

mod builder;
mod in_pod;

use std::{process::ExitStatus, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{process::Child, time::timeout};

use crate::{Api, Failure, Log, Metrics, Outcome, eventually, http_get::get, limits};

pub(crate) use in_pod::InPod;

pub use builder::{AgentBuilder, KEEP_VARIABLE};

/// How much of the log a failure shows.
const TAIL: usize = 40;

/// A running agent, ended when dropped. Its log must then be free of the secrets it was given.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    log: Log,
    pub(crate) secrets: Vec<String>,
    pub(crate) api: Api,
    rpc_port: u16,
    pub(crate) metrics_port: u16,
    pub(crate) admin_port: u16,
    /// Config file and log.
    _folder: TempDir,
}

impl Agent {
    /// Port of the RPC services.
    pub fn rpc_port(&self) -> u16 {
        self.rpc_port
    }

    /// Port of the page and its API.
    pub fn admin_port(&self) -> u16 {
        self.admin_port
    }

    /// What it wrote so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Its process id.
    pub fn id(&self) -> Outcome<u32> {
        self.child
            .id()
            .ok_or_else(|| Failure::new("the agent has ended"))
    }

    /// A scrape.
    pub async fn metrics(&self) -> Outcome<Metrics> {
        let (code, text) = get(self.metrics_port, "/metrics").await?;
        if code == 200 {
            Ok(Metrics::parse(&text))
        } else {
            Err(Failure::new(format!("/metrics answered {code}: {text}")))
        }
    }

    /// Status and body of a health endpoint: `live`, `ready`, `startup`.
    pub async fn health(&self, which: &str) -> Outcome<(u16, String)> {
        Ok(get(self.metrics_port, &format!("/health/{which}")).await?)
    }

    /// Status and body of a GET of the page's port.
    pub async fn admin(&self, path: &str) -> Outcome<(u16, String)> {
        Ok(get(self.admin_port, path).await?)
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&mut self, limit: Duration) -> Outcome {
        let port = self.metrics_port;
        let ready = eventually("the agent is ready", limit, async || {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}"));
            }
            match get(port, "/health/ready").await {
                Ok((200, _)) => Ok(()),
                Ok((code, body)) => Err(format!("{code}: {body}")),
                Err(error) => Err(error.to_string()),
            }
        });
        let ready = ready.await;
        ready.map_err(|failure| self.explained(&failure))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Outcome {
        let id = i32::try_from(self.id()?)?;
        let pid = Pid::from_raw(id).ok_or_else(|| Failure::new("process id 0"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// SIGKILL, and waits for its end.
    pub async fn kill(&mut self) -> Outcome {
        self.signal(Signal::KILL)?;
        self.wait(limits::SHORT).await.map(drop)
    }

    /// SIGSTOP: its connections stay open and it does nothing.
    pub fn pause(&self) -> Outcome {
        self.signal(Signal::STOP)
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self) -> Outcome {
        self.signal(Signal::CONT)
    }

    /// Waits for its end.
    pub async fn wait(&mut self, limit: Duration) -> Outcome<ExitStatus> {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => Err(self.explained(&Failure::new(format!(
                "the agent did not end within {limit:?}"
            )))),
        }
    }

    /// SIGTERM, and waits for an exit with code 0. Before that, nothing that it shows or wrote may
    /// show a secret.
    pub async fn stop(mut self) -> Outcome {
        self.outputs_show_no_secret().await?;
        self.signal(Signal::TERM)?;
        let status = self.wait(limits::SHORT).await?;
        if status.success() {
            Ok(())
        } else {
            Err(self.explained(&Failure::new(format!("SIGTERM ended it with {status}"))))
        }
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Physical memory in bytes.
    pub fn resident_bytes(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kibibytes
            .map(|kibibytes| kibibytes * 1024)
            .ok_or_else(|| Failure::new("no VmRSS"))
    }

    fn explained(&self, failure: &Failure) -> Failure {
        Failure::new(format!(
            "{failure}\nthe end of its log:\n{}",
            self.log.tail(TAIL)
        ))
    }

    fn leaks(&self) -> Vec<String> {
        let text = self.log.text().unwrap_or_default();
        let leaked = |line: &&str| {
            self.secrets
                .iter()
                .any(|secret| line.contains(secret.as_str()))
        };
        text.lines().filter(leaked).map(str::to_owned).collect()
    }
}

impl Drop for Agent {
    #[expect(clippy::print_stderr, reason = "a test fails")]
    fn drop(&mut self) {
        // A test that ends with an error does not panic, and does not come to stop its agents.
        let has_failed = std::thread::panicking() || self.is_running();
        // Its end is not waited for: nobody else uses its ports or its folder.
        let _ = self.child.start_kill();
        if has_failed {
            eprintln!("the end of the agent's log:\n{}", self.log.tail(TAIL));
        }
        if !std::thread::panicking() {
            let leaks = self.leaks();
            assert!(
                leaks.is_empty(),
                "the log shows a secret:\n{}",
                leaks.join("\n")
            );
        }
    }
}
