//! The command line of `krane-demo`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Parser};
use krane_domain::secret::Secret;
use krane_domain::words::chain;
use krane_settings::{InvalidSettings, LoadInput};
use tokio::signal::unix::{SignalKind, signal};

use krane::cli::{Failure, Terminal, duration, exit, refused};
use krane::version;

use crate::{CrowdOptions, DemoError, Format, Options};

/// Watch krane at work on a cluster and a control plane in memory; needs nothing else.
///
/// `KRANE__OBSERVABILITY__TRACING__ENDPOINT` sends its traces to a collector.
#[derive(Debug, Parser)]
#[command(name = "krane-demo", version = version::LONG)]
struct Cli {
    /// Which story: the same number tells the same one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// End after about this long, such as 30s; the exit code is 0 only if all is in place then. A crowd comes first.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,

    /// Show the live page at this port of 127.0.0.1 instead of a free one.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Run so many more apps beside those of the story, up to 10000: to see krane with many.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000))]
    apps: u32,

    /// Change so many of them in a second, up to 1000.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "apps", value_parser = clap::value_parser!(u32).range(..=1_000))]
    changes: u32,

    /// Ask for this token (browsers: as the password of any name), and let krane resync, retry, hold and writes act.
    #[arg(long, value_name = "TOKEN", value_parser = TokenParser)]
    token: Option<Secret>,

    /// Tell it in JSON, one object per event and a summary at the end.
    #[arg(long)]
    json: bool,

    /// Write krane's own log lines to stderr; twice for more.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Plays what the command line asks for, and returns the exit code of the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let env = LoadInput::from_process().env;
    match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.execute(&env, &Terminal::of_process(&env)),
        Err(usage) => refused(&usage),
    }
}

/// Takes what can be asked for in a header, and repeats nothing of what it refuses.
#[derive(Clone)]
struct TokenParser;

impl TypedValueParser for TokenParser {
    type Value = Secret;

    fn parse_ref(
        &self,
        command: &Command,
        _arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Secret, clap::Error> {
        let fits = |text: &&str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        match value.to_str().filter(fits) {
            Some("") => Err("is empty"),
            Some(token) => Ok(Secret::new(token.to_owned())),
            None => Err("holds a character that cannot travel in an HTTP header"),
        }
        .map_err(|reason| {
            let words = format!("--token {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, words).with_cmd(command)
        })
    }
}

impl Cli {
    fn execute(self, env: &BTreeMap<String, String>, terminal: &Terminal) -> ExitCode {
        if self.apps == 0 && self.changes > 0 {
            let words = "--changes needs --apps of 1 or more: nobody else is changed\n";
            return refused(&clap::Error::raw(ErrorKind::ValueValidation, words));
        }
        let color = io::stdout().is_terminal() && Terminal::may_color(env);
        let options = Options {
            seed: self.seed,
            length: self.length,
            port: self.port,
            crowd: CrowdOptions {
                apps: usize::try_from(self.apps).unwrap_or(usize::MAX),
                changes_per_second: self.changes,
            },
            token: self.token,
            format: if self.json {
                Format::Json
            } else {
                Format::Text { color }
            },
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return Failure::threads(&error).tell(terminal),
        };
        let result = runtime.block_on(play(options, self.verbose, env));
        runtime.shutdown_background();
        match result {
            Ok(true) => ExitCode::from(exit::OK),
            Ok(false) => ExitCode::from(exit::FINDINGS),
            Err(Ended::Settings(invalid)) => {
                terminal.invalid_settings(&invalid);
                ExitCode::from(exit::CONFIG)
            }
            Err(Ended::Failure(failure)) => failure.tell(terminal),
        }
    }
}

/// Why a demo ended that should not have.
enum Ended {
    Settings(Box<InvalidSettings>),
    Failure(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

async fn play(
    options: Options,
    verbose: u8,
    env: &BTreeMap<String, String>,
) -> Result<bool, Ended> {
    let level = match verbose {
        0 | 1 => "info",
        _ => "debug",
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| signals(&error))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| signals(&error))?;
    let demo = crate::Demo::prepare(options, level, env)
        .await
        .map_err(ended)?;
    let init = match verbose {
        0 => krane_telemetry::init_unread,
        _ => krane_telemetry::init,
    };
    let telemetry = init(demo.settings()).map_err(|error| Failure {
        code: exit::SOFTWARE,
        name: "krane::demo::telemetry",
        cause: Some(chain(&error)),
        sentence: "log lines or traces cannot be written".to_owned(),
        help: "leave -v out, and unset KRANE__OBSERVABILITY__TRACING__ENDPOINT".to_owned(),
    })?;
    let interrupted = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let played = demo.play(Box::new(io::stdout()), interrupted).await;
    telemetry.shutdown().await;
    match played {
        // The reader has had enough.
        Err(DemoError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        played => played.map_err(ended),
    }
}

fn signals(error: &io::Error) -> Failure {
    Failure {
        code: exit::UNAVAILABLE,
        name: "krane::demo::signals",
        sentence: "signals cannot be listened to".to_owned(),
        cause: Some(error.to_string()),
        help: "raise the limit on open files".to_owned(),
    }
}

fn ended(error: DemoError) -> Ended {
    let (code, name, help) = match error {
        DemoError::Settings(invalid) => return Ended::Settings(invalid),
        DemoError::Run(error) => return Failure::from(error).into(),
        DemoError::Port(_) | DemoError::ControlPlane(_) => (
            exit::UNAVAILABLE,
            "krane::demo::port",
            "let programs listen on 127.0.0.1",
        ),
        DemoError::ThisPort { .. } => (
            exit::UNAVAILABLE,
            "krane::demo::port",
            "choose another --port, or leave it out to get a free one",
        ),
        DemoError::Output(_) => (
            exit::UNAVAILABLE,
            "krane::demo::output",
            "check where stdout goes",
        ),
    };
    Ended::Failure(Failure {
        code,
        name,
        cause: std::error::Error::source(&error).map(chain),
        sentence: error.to_string(),
        help: help.to_owned(),
    })
}
