//! `krane check`

mod report;
mod takeover;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use krane_settings::{InvalidSettings, LoadInput, Loaded};
use tokio::time::timeout;

use super::exit;
use super::flags::SettingFlags;
use super::output::{Output, Terminal};
use super::run::Failure;
use crate::preflight::findings::{Finding, Group, Report};

const MORE: &str = "\
Looks at the configuration, the way to the control plane and its answer, the API server, every
right that krane needs, what it needs to be there, the vault, the clocks and the ports. What
lies behind something that failed is not looked at, and said so. It takes 15 s at most, with
--takeover 30 s.

Run it where krane runs, with krane's rights:
  kubectl -n krane exec deploy/krane -- /krane check --config /etc/krane/chart/krane.toml

Exit codes: 0 all is well, warnings included; 1 something is wrong (with --strict, a warning or
something that could not be looked at is); 69 nothing is known to be wrong, but something that
krane needs could not be looked at; 77 nothing but rights is missing; 78 the configuration is
wrong.";

/// For everything of `--takeover`.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(30);

/// Says whether krane would run here, and if not, why. Changes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(super) struct Check {
    /// Instead: what krane would do about what another agent or another version left here, and what
    /// it would leave lying.
    #[arg(long)]
    takeover: bool,

    /// A warning, or something that could not be looked at, ends it with 1, too.
    #[arg(long, conflicts_with = "takeover")]
    strict: bool,

    /// How to print it.
    #[arg(short, long, value_enum, default_value = "text")]
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

impl Check {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let mut input = self.settings.into_input(process);
        input.kubeconfig = self.kubeconfig;
        input.context = self.context;
        let loaded = match Loaded::load(&input) {
            Ok(loaded) => loaded,
            Err(invalid) => {
                if self.output == Output::Json && !self.takeover {
                    // Whether it can be written changes nothing about the answer.
                    let _ = terminal.data(&report::json(&of_invalid(&invalid)));
                } else {
                    terminal.invalid_settings(&invalid);
                }
                return ExitCode::from(exit::CONFIG);
            }
        };
        let runtime = match tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => return Failure::threads(&error).tell(terminal),
        };
        let code = if self.takeover {
            runtime.block_on(take_over(&loaded, self.output, terminal))
        } else {
            runtime.block_on(preflight(&loaded, self.output, self.strict, terminal))
        };
        // A name that is still being looked up must not hold up the exit.
        runtime.shutdown_background();
        code
    }
}

async fn preflight(loaded: &Loaded, output: Output, strict: bool, terminal: &Terminal) -> ExitCode {
    let mut findings = of_configuration(loaded);
    let is_usable = findings.iter().all(|finding| !finding.is_failure());
    findings.extend(crate::preflight::look(&loaded.settings).await);
    let report = Report::new(findings);
    let text = match output {
        Output::Text => report::words(&report),
        Output::Json => report::json(&report),
    };
    let printed = terminal.data(&text);
    let summary = report.summary;
    if !is_usable {
        ExitCode::from(exit::CONFIG)
    } else if report.lacks_only_rights() {
        ExitCode::from(exit::NO_PERMISSION)
    } else if report.lacks_only_answers() {
        ExitCode::from(exit::UNAVAILABLE)
    } else if summary.failed > 0 || (strict && (summary.warnings > 0 || report.has_unseen())) {
        ExitCode::from(exit::FINDINGS)
    } else {
        printed
    }
}

/// What a configuration that can be read says about itself.
fn of_configuration(loaded: &Loaded) -> Vec<Finding> {
    let (group, check) = (Group::Configuration, "configuration");
    let mut findings = match crate::run::check(&loaded.settings) {
        Ok(()) => vec![Finding::pass(group, check, "the configuration is valid")],
        Err(error) => {
            let failure = Failure::from(error);
            let mut failed = Finding::fail(group, check, failure.name, failure.sentence);
            failed.why = failure.cause;
            vec![failed.fix(failure.help)]
        }
    };
    findings.extend(loaded.misspelt.iter().map(|misspelt| {
        let message = format!("{} has no effect", misspelt.name);
        Finding::warn(group, check, "krane::config::misspelt", message)
            .because("no setting has this name")
            .fix(format!("did you mean {}?", misspelt.meant))
    }));
    findings
}

/// What a wrong configuration says, as a report.
fn of_invalid(invalid: &InvalidSettings) -> Report {
    let findings = invalid.problems.iter().map(|problem| {
        let message = format!("{} {}", problem.key, problem.kind);
        let mut failed = Finding::fail(
            Group::Configuration,
            "configuration",
            problem.kind.code(),
            message,
        );
        failed.why = problem
            .origin
            .as_ref()
            .map(|origin| format!("from {origin}"));
        failed.fix(&problem.help)
    });
    Report::new(findings.collect())
}

async fn take_over(loaded: &Loaded, output: Output, terminal: &Terminal) -> ExitCode {
    let looking = crate::run::look_before_take_over(&loaded.settings);
    let findings = match timeout(TAKEOVER_LIMIT, Box::pin(looking)).await {
        Ok(Ok(findings)) => findings,
        Ok(Err(error)) => return Failure::from(error).tell(terminal),
        Err(_) => {
            let late = Failure {
                code: exit::UNAVAILABLE,
                name: "krane::check::deadline",
                sentence: format!("not everything could be looked at within {TAKEOVER_LIMIT:?}"),
                cause: None,
                help: "run krane check, which says what does not answer".to_owned(),
            };
            return late.tell(terminal);
        }
    };
    let text = match output {
        Output::Text => takeover::words(&findings),
        Output::Json => format!("{:#}\n", serde_json::json!(findings)),
    };
    let printed = terminal.data(&text);
    let is_calm = findings.changes.is_empty()
        && findings.leftovers.is_empty()
        && findings.problems.is_empty();
    if is_calm {
        printed
    } else {
        ExitCode::from(exit::FINDINGS)
    }
}
