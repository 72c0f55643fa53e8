//! `krane config`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use krane_settings::{DEFAULT_TOML, reference};

use super::output::Terminal;

/// Prints what a configuration may hold.
#[derive(Debug, Args)]
pub(super) struct Config {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// A JSON schema (draft 7), for editors and checks.
    Schema {
        /// Only what the chart takes below `config`, as its values.schema.json has it.
        #[arg(long)]
        chart: bool,
    },
    /// A table of every key in Markdown.
    Docs,
    /// A complete file with comments; every value in it is the default.
    Default,
}

impl Config {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let json = |schema: serde_json::Value| format!("{schema:#}\n");
        terminal.data(&match self.verb {
            Verb::Schema { chart: false } => json(reference::json_schema()),
            Verb::Schema { chart: true } => json(reference::chart_schema()),
            Verb::Docs => reference::markdown(),
            Verb::Default => DEFAULT_TOML.to_owned(),
        })
    }
}
