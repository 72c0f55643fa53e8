//! `krane run`

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::exit;
use super::flags::SettingFlags;
use super::output::Terminal;
use crate::rpc::bind::Listeners;
use crate::run::RunError;
use crate::settings::{FlagValue, LoadInput, Loaded, Misspelt, SetInVain, Settings};
use crate::telemetry;
use crate::words::chain;

/// Starts the agent and stays until a signal.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_OF_RUN)]
pub(super) struct Run {
    /// Write nothing to the cluster; the same as `--set safety.writes=off`.
    #[arg(long)]
    observe: bool,

    /// Use this kubeconfig instead of the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    #[command(flatten)]
    settings: SettingFlags,
}

/// Why `krane run` ended, for its last words and its exit code.
pub(super) struct Failure {
    pub(super) code: u8,
    pub(super) name: &'static str,
    pub(super) sentence: String,
    pub(super) cause: Option<String>,
    pub(super) help: String,
}

impl Failure {
    pub(super) fn threads(error: &std::io::Error) -> Self {
        Self {
            code: exit::UNAVAILABLE,
            name: "krane::run::threads",
            sentence: "no threads could be started".to_owned(),
            cause: Some(error.to_string()),
            help: "raise the limit on processes".to_owned(),
        }
    }

    /// The last words, and the exit code.
    pub(super) fn tell(&self, terminal: &Terminal) -> ExitCode {
        let cause = self.cause.as_deref().map(|cause| ("cause", cause));
        let facts: Vec<_> = cause.into_iter().collect();
        terminal.failure(self.name, &self.sentence, &facts, &self.help);
        if self.code == exit::CONFIG {
            terminal.count_of_problems(1);
        }
        ExitCode::from(self.code)
    }
}

impl Run {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let loaded = match Loaded::load(&self.into_input(process)) {
            Ok(loaded) => loaded,
            Err(invalid) => {
                terminal.invalid_settings(&invalid);
                return ExitCode::from(exit::CONFIG);
            }
        };
        let result = match tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => {
                let result = runtime.block_on(run(loaded));
                // A flush that is still blocked must not hold up the exit.
                runtime.shutdown_background();
                result
            }
            Err(error) => Err(Failure::threads(&error)),
        };
        match result {
            Ok(()) => ExitCode::from(exit::OK),
            Err(failure) => failure.tell(terminal),
        }
    }

    pub(super) fn into_input(self, process: LoadInput) -> LoadInput {
        let mut input = self.settings.into_input(process);
        input.kubeconfig = self.kubeconfig;
        input.context = self.context;
        if self.observe {
            input.flags.push(FlagValue {
                flag: "--observe".to_owned(),
                path: "safety.writes".to_owned(),
                value: "off".to_owned(),
            });
        }
        input
    }
}

async fn run(loaded: Loaded) -> Result<(), Failure> {
    let Loaded {
        settings,
        in_vain,
        misspelt,
        ..
    } = loaded;
    let listeners = Listeners::bind(&settings).await.map_err(|error| Failure {
        code: exit::UNAVAILABLE,
        name: "krane::run::port",
        sentence: error.to_string(),
        cause: Some(error.source.to_string()),
        help: error.help(),
    })?;
    let telemetry = telemetry::init(&settings).map_err(|error| Failure {
        code: exit::CONFIG,
        name: "krane::run::telemetry",
        cause: error.source().map(ToString::to_string),
        sentence: error.to_string(),
        help: "correct the observability settings".to_owned(),
    })?;
    for SetInVain { key, origin } in &in_vain {
        tracing::warn!(key = key.path, %origin, "a setting has no effect: {}", key.missing);
    }
    for Misspelt { name, meant } in &misspelt {
        tracing::warn!(
            name,
            meant,
            "a variable has no effect: its name is no name of krane's"
        );
    }
    let result = agent(settings, listeners).await;
    telemetry.shutdown().await;
    result
}

async fn agent(settings: Settings, listeners: Listeners) -> Result<(), Failure> {
    let result = crate::run::run(settings, listeners).await;
    result.map_err(Failure::from)
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let (code, name, help) = match &error {
            RunError::Kubernetes(_) => (
                exit::CONFIG,
                "krane::run::kubernetes",
                "check the ServiceAccount or kubeconfig",
            ),
            RunError::ControlPlane(_) => (
                exit::CONFIG,
                "krane::run::control_plane",
                "check control.url and control.ca_file",
            ),
            RunError::Tls(_) => (
                exit::CONFIG,
                "krane::run::tls",
                "check rpc.tls.cert and rpc.tls.key",
            ),
            RunError::Vault(_) => (
                exit::CONFIG,
                "krane::run::vault",
                "check vault.url and vault.token, or vault.master_keys and vault.s3",
            ),
            RunError::Interrupted { code } => (
                *code,
                "krane::run::interrupted",
                "wait for the ordered stop next time",
            ),
            RunError::Signals(_)
            | RunError::Metrics(_)
            | RunError::Listener(_)
            | RunError::Start(_)
            | RunError::GaveUp(_) => (
                exit::SOFTWARE,
                "krane::run::agent",
                "report this as a defect, with the log",
            ),
        };
        Failure {
            code,
            name,
            cause: error.source().map(chain),
            sentence: error.to_string(),
            help: help.to_owned(),
        }
    }
}
