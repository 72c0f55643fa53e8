//! `krane version`

use std::process::ExitCode;

use clap::Args;

use super::output::{Output, Terminal};
use crate::version;

/// Prints what this binary is.
#[derive(Debug, Args)]
pub(super) struct Version {
    /// How to print it.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

impl Version {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        terminal.data(&match self.output {
            Output::Text => format!("krane {}\n", version::LONG),
            Output::Json => {
                let version = serde_json::json!({
                    "apiVersion": "krane/v1",
                    "kind": "Version",
                    "version": version::VERSION,
                    "commit": version::COMMIT,
                    "rustc": version::RUSTC,
                });
                format!("{version:#}\n")
            }
        })
    }
}
