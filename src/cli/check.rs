//! `krane check`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::exit;
use super::flags::SettingFlags;
use super::output::Terminal;
use super::run::Failure;
use crate::run::take_over::Findings;
use crate::settings::{LoadInput, Loaded};

/// Looks at a cluster with your own rights, and changes nothing.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// What krane would do about what another agent or another version left here, and what it would
    /// leave lying.
    #[arg(long, required = true)]
    takeover: bool,

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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Text,
    Json,
}

impl Check {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let mut input = self.settings.into_input(process);
        input.kubeconfig = self.kubeconfig;
        input.context = self.context;
        let loaded = match Loaded::load(&input) {
            Ok(loaded) => loaded,
            Err(invalid) => {
                terminal.invalid_settings(&invalid);
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
        let found = runtime.block_on(crate::run::look_before_take_over(&loaded.settings));
        let findings = match found {
            Ok(findings) => findings,
            Err(error) => return Failure::from(error).tell(terminal),
        };
        let text = match self.output {
            Output::Text => words(&findings),
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
}

/// The findings for a person.
fn words(findings: &Findings) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    for summary in &findings.controllers {
        let mut words = format!(
            "{:<12} {} objects with an id, {} of what was compared in place",
            summary.controller, summary.objects, summary.in_place,
        );
        if summary.pods_of_others > 0 {
            let _ = write!(
                words,
                "; {} pods that no krane made stay as they are",
                summary.pods_of_others
            );
        }
        line(&words);
    }
    if findings.changes.is_empty() {
        line("\n✔ krane would change nothing");
    } else {
        line(&format!(
            "\n‼ krane would change {}:",
            findings.changes.len()
        ));
    }
    for planned in &findings.changes {
        line(&format!("  {} {}", planned.action.words(), planned.object));
        for path in planned.paths.iter().take(8) {
            line(&format!("      {path}"));
        }
        if planned.paths.len() > 8 {
            line(&format!("      and {} more", planned.paths.len() - 8));
        }
    }
    if findings.leftovers.is_empty() {
        line("\n✔ nothing is left of another agent");
    } else {
        line(&format!(
            "\n‼ {} left of another agent; krane deletes none of them:",
            findings.leftovers.len()
        ));
    }
    for leftover in &findings.leftovers {
        line(&format!("  {}", leftover.object));
        line(&format!("      {}", leftover.why));
        line(&format!("      {}", leftover.command));
    }
    if !findings.problems.is_empty() {
        line(&format!("\n✗ {} not found out:", findings.problems.len()));
    }
    for problem in &findings.problems {
        line(&format!("  {problem}"));
    }
    text
}
