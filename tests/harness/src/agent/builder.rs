//! What an agent is started with.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::process::Command;

use super::InPod;
use crate::{Agent, Api, Log, Outcome, free_ports::free_ports, limits};

/// Set: the folders of agents, with their logs, are kept.
pub const KEEP_VARIABLE: &str = "KRANE_TESTHARNESS_KEEP";

/// An agent to be started, as often as wanted.
#[derive(Clone, Debug)]
pub struct AgentBuilder {
    pub(crate) binary: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// What it uses instead of the kubeconfig.
    pub(crate) pod: Option<InPod>,
    pub(crate) control_url: String,
    pub(crate) token: String,
    /// The agent ends with this group.
    pub(crate) process_group: i32,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) secrets: Vec<String>,
    pub(crate) api: Api,
}

impl AgentBuilder {
    /// Sets a configuration key.
    #[must_use]
    pub fn set(mut self, key: &str, value: &(impl ToString + ?Sized)) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses another kubeconfig.
    #[must_use]
    pub fn kubeconfig(mut self, kubeconfig: &Path) -> Self {
        kubeconfig.clone_into(&mut self.kubeconfig);
        self
    }

    /// Uses what a kubelet gives to a pod instead of a kubeconfig.
    #[must_use]
    pub(crate) fn in_pod(mut self, pod: InPod) -> Self {
        self.pod = Some(pod);
        self
    }

    /// A text that must never show in the log.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secrets.push(secret.to_owned());
        self
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&self) -> Outcome<Agent> {
        let mut agent = self.spawn()?;
        agent.ready(limits::LONG).await?;
        Ok(agent)
    }

    /// Starts it.
    pub fn spawn(&self) -> Outcome<Agent> {
        let mut folder = TempDir::with_prefix("krane-agent-")?;
        folder.disable_cleanup(std::env::var_os(KEEP_VARIABLE).is_some());
        let ports = free_ports()?;
        let config = folder.path().join("krane.toml");
        fs::write(&config, self.config(ports)?)?;
        let arguments = ["run".into(), "--config".into(), config.into()];
        self.spawn_in(folder, arguments, ports)
    }

    /// Starts it with these arguments; the configuration they name opens these ports, for rpc, metrics and the page.
    pub(crate) fn spawn_in(
        &self,
        folder: TempDir,
        arguments: impl IntoIterator<Item = OsString>,
        [rpc_port, metrics_port, admin_port]: [u16; 3],
    ) -> Outcome<Agent> {
        let log = Log::new(folder.path().join("log"));
        let mut secrets = self.secrets.clone();
        secrets.push(self.token.clone());
        let mut command = if let Some(pod) = &self.pod {
            let words = pod.command(&self.binary);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).args(arguments).env_clear();
            command.envs(pod.variables());
            secrets.push(fs::read_to_string(pod.account.join("token"))?);
            command
        } else {
            let mut command = Command::new(&self.binary);
            command.args(arguments).env_clear();
            command.arg("--kubeconfig").arg(&self.kubeconfig);
            secrets.extend(tokens(&fs::read_to_string(&self.kubeconfig)?));
            command
        };
        command
            .env("RUST_BACKTRACE", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(folder.path())
            .process_group(self.process_group)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log.path())?)
            .kill_on_drop(true);
        for (key, value) in &self.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        Ok(Agent {
            child: command.spawn()?,
            log,
            secrets,
            api: self.api.clone(),
            rpc_port,
            metrics_port,
            admin_port,
            _folder: folder,
        })
    }

    fn config(&self, [rpc, metrics, admin]: [u16; 3]) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        writeln!(text, "region = {:?}", krane_sim::control_plane::REGION)?;
        writeln!(text, "platform = {:?}", krane_sim::control_plane::PLATFORM)?;
        writeln!(text, "rpc_port = {rpc}")?;
        writeln!(
            text,
            "[control]\nurl = {:?}\ntoken = {:?}",
            self.control_url, self.token
        )?;
        writeln!(text, "[lease]\nenabled = false")?;
        writeln!(text, "[admin]\nlisten = \"127.0.0.1:{admin}\"")?;
        writeln!(text, "[observability.metrics]\nprometheus_port = {metrics}")?;
        writeln!(text, "[observability.logging]\nformat = \"json\"")?;
        Ok(text)
    }
}

/// The web tokens in a kubeconfig: a log may show none of them.
fn tokens(kubeconfig: &str) -> Vec<String> {
    let words = kubeconfig.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    words
        .filter(|word| word.starts_with("eyJ"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_json_and_yaml() {
        assert_eq!(tokens("{\"token\":\"eyJa.b\"}"), ["eyJa.b"]);
        assert_eq!(tokens("user:\n  token: eyJa.b\nother: x"), ["eyJa.b"]);
    }
}
