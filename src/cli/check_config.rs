//! `krane check-config`

use std::process::ExitCode;

use clap::Args;

use super::exit;
use super::flags::SettingFlags;
use super::output::Terminal;
use crate::settings::{LoadInput, Loaded};

/// Reads every layer as `krane run` would, and starts nothing.
#[derive(Debug, Args)]
pub(super) struct CheckConfig {
    /// Print every key with its value and origin, secrets masked.
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

impl CheckConfig {
    pub(super) fn execute(self, process: LoadInput, terminal: &Terminal) -> ExitCode {
        match Loaded::load(&self.settings.into_input(process)) {
            Ok(loaded) => {
                let code = if self.print {
                    terminal.data(&loaded.effective.to_string())
                } else {
                    terminal.success("the configuration is valid");
                    ExitCode::from(exit::OK)
                };
                terminal.set_in_vain(&loaded.in_vain);
                code
            }
            Err(invalid) => {
                terminal.invalid_settings(&invalid);
                ExitCode::from(exit::CONFIG)
            }
        }
    }
}
