//! `krane man`

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};

use super::exit;
use super::output::{Terminal, printable};
use crate::version;

const MORE: &str = "\
Examples:
  krane man | man -l -
  krane man explain > /usr/local/share/man/man1/krane-explain.1";

/// Prints a page of the manual, for `man -l -` or a file.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(super) struct Man {
    /// The page of this verb; the first page when absent.
    #[arg(value_name = "VERB")]
    verbs: Vec<String>,
}

impl Man {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        if let Some(page) = page(&self.verbs) {
            return terminal.data(&page);
        }
        let verbs = printable(&self.verbs.join(" "));
        terminal.failure(
            "krane::man::no_such",
            &format!("krane has no verb {verbs}"),
            &[],
            "`krane --help` lists them",
        );
        ExitCode::from(exit::USAGE)
    }
}

/// The page of a verb below the others; nothing when there is no such verb.
pub(super) fn page(verbs: &[String]) -> Option<String> {
    let mut root = super::Cli::command();
    root.build();
    let found = verbs
        .iter()
        .try_fold(&root, |command, verb| command.find_subcommand(verb))?;
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(found.clone()).source(format!("krane {}", version::VERSION));
    page.render(&mut text).ok()?;
    String::from_utf8(text).ok()
}
