//! `krane check-config`

use std::process::ExitCode;

use clap::Args;
use krane_settings::{LoadInput, Loaded};

use super::exit;
use super::flags::SettingFlags;
use super::output::Terminal;
use super::run::Failure;

/// Reads every layer as `krane run` would, and the files that they name, and starts nothing.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_OF_CHECK_CONFIG)]
pub(super) struct CheckConfig {
    /// Print every key with its value and origin, secrets masked.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

impl CheckConfig {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        let loaded = match Loaded::load(&self.settings.into_input(process)) {
            Ok(loaded) => loaded,
            Err(invalid) => {
                if self.print {
                    // Whether it can be written changes nothing about the answer.
                    let _ = terminal.data(&invalid.effective.to_string());
                }
                terminal.invalid_settings(&invalid);
                return ExitCode::from(exit::CONFIG);
            }
        };
        let printed = self
            .print
            .then(|| terminal.data(&loaded.effective.to_string()));
        terminal.misspelt(&loaded.misspelt);
        if let Err(failure) = crate::run::check(&loaded.settings) {
            return Failure::from(failure).tell(terminal);
        }
        printed.unwrap_or_else(|| {
            terminal.success("the configuration is valid");
            ExitCode::from(exit::OK)
        })
    }
}
