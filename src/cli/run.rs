//! `krane run`

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use krane_domain::words::chain;
use krane_server::bind::Listeners;
use krane_server::bounds::raise_open_files;
use krane_settings::{LoadInput, Loaded, Misspelt};

use super::duration::duration;
use super::exit;
use super::flags::SettingFlags;
use super::output::{Output, Terminal};
use crate::observe::Summary;
use crate::run::{RunError, World};

/// Starts the agent and stays until a signal.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_OF_RUN)]
pub(super) struct Run {
    /// Write nothing anywhere: every write is a dry run of the API server, the control plane is told
    /// nothing, no lease is held and no pod is given secrets. Ends with what would have been written.
    #[arg(long)]
    observe: bool,

    /// With --observe: end after this long, such as 60s, instead of at a signal.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "observe")]
    length: Option<Duration>,

    /// With --observe: how to print what would have been written.
    #[arg(short, long, value_enum, default_value = "text", requires = "observe")]
    output: Output,

    /// Use this kubeconfig instead of the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    #[command(flatten)]
    settings: SettingFlags,
}

/// How long to observe, and how to say what was seen.
struct Observation {
    length: Option<Duration>,
    output: Output,
}

/// Why `krane run` ended, for its last words and its exit code.
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The error's name in docs/errors.md.
    pub name: &'static str,
    /// What happened.
    pub sentence: String,
    /// Why, if it is known.
    pub cause: Option<String>,
    /// What to do about it.
    pub help: String,
}

impl Failure {
    /// No thread could be started for the runtime.
    pub fn threads(error: &std::io::Error) -> Self {
        Self {
            code: exit::UNAVAILABLE,
            name: "krane::run::threads",
            sentence: "no threads could be started".to_owned(),
            cause: Some(error.to_string()),
            help: "raise the limit on processes".to_owned(),
        }
    }

    /// The last words, and the exit code.
    pub fn tell(&self, terminal: &Terminal) -> ExitCode {
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
    pub(super) fn execute(
        self,
        process: LoadInput,
        terminal: &Terminal,
        alter: fn(World) -> World,
    ) -> ExitCode {
        let observation = self.observe.then_some(Observation {
            length: self.length,
            output: self.output,
        });
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
                let result = runtime.block_on(run(loaded, observation.as_ref(), alter));
                // A flush that is still blocked must not hold up the exit.
                runtime.shutdown_background();
                result
            }
            Err(error) => Err(Failure::threads(&error)),
        };
        match result {
            Ok(None) => ExitCode::from(exit::OK),
            Ok(Some(summary)) => tell(&summary, observation.as_ref(), terminal),
            Err(failure) => failure.tell(terminal),
        }
    }

    pub(super) fn into_input(self, process: LoadInput) -> LoadInput {
        let mut input = self.settings.into_input(process);
        input.kubeconfig = self.kubeconfig;
        input.context = self.context;
        input
    }
}

/// What would have been written and what is in the way, and the exit code that says whether anything.
fn tell(summary: &Summary, observation: Option<&Observation>, terminal: &Terminal) -> ExitCode {
    let is_json = observation.is_some_and(|it| it.output == Output::Json);
    let text = if is_json {
        format!("{:#}\n", serde_json::json!(summary))
    } else {
        summary.words()
    };
    let printed = terminal.data(&text);
    if !summary.unsettled.is_empty() {
        ExitCode::from(exit::UNAVAILABLE)
    } else if summary.is_calm() {
        printed
    } else {
        ExitCode::from(exit::FINDINGS)
    }
}

async fn run(
    loaded: Loaded,
    observation: Option<&Observation>,
    alter: fn(World) -> World,
) -> Result<Option<Summary>, Failure> {
    let Loaded {
        settings, misspelt, ..
    } = loaded;
    let listeners = Listeners::bind(&settings).await.map_err(|error| Failure {
        code: exit::UNAVAILABLE,
        name: "krane::run::port",
        sentence: error.to_string(),
        cause: Some(error.source.to_string()),
        help: error.help(),
    })?;
    let telemetry = krane_telemetry::init(&settings).map_err(|error| Failure {
        code: exit::CONFIG,
        name: "krane::run::telemetry",
        cause: error.source().map(ToString::to_string),
        sentence: error.to_string(),
        help: "correct the observability settings".to_owned(),
    })?;
    // The soft limit is often 1,024, for programs that krane is none of.
    if let Err(error) = raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    for Misspelt { name, meant } in &misspelt {
        tracing::warn!(
            name,
            meant,
            "a variable has no effect: its name is no name of krane's"
        );
    }
    let checked = crate::run::check(&settings);
    let result = match observation {
        // What is wrong with the files comes before what is wrong with the world.
        _ if checked.is_err() => checked.map(|()| None),
        None => crate::run::run(settings, listeners, alter)
            .await
            .map(|()| None),
        Some(observation) => {
            let summary = crate::run::observe(settings, listeners, observation.length).await;
            summary.map(Some)
        }
    };
    telemetry.shutdown().await;
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
