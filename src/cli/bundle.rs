//! `krane support-bundle`, and how it is looked into.
//!
//! A bundle is what the API answered, under the paths that were asked: the verbs that look at a
//! running krane find the same in it. The API tells no secret, and so no bundle holds one.

mod kept;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, json};

use super::admin::{AdminFlags, AskError, block_on};
use super::exit;
use super::named::{Found, fetch};
use super::output::{Terminal, printable};
use super::told::{self, Told};
use crate::version;
use crate::words::many;
pub(super) use kept::{Bundle, BundleError};

/// Workloads whose own pages are kept: those in trouble come first.
const PAGES: usize = 200;
/// What is kept beside those.
const PATHS: [&str; 6] = [
    "/api/v1/health",
    "/api/v1/tree",
    "/api/v1/controllers",
    "/api/v1/events",
    "/api/v1/history",
    "/api/v1/log",
];
const WORKLOADS: &str = "/api/v1/workloads";

const MORE: &str = "\
A bundle is one JSON file with what the page shows: the problems, the tree, the controllers, all workloads, the \
pages of the first 200 (those in trouble come first), events, the last hour and the last log lines. It holds no \
secret; it does hold the names of workloads, addresses of pods, and values of fields that differ.

  krane support-bundle
  krane status --from krane-support.json
  krane explain web --from krane-support.json";

/// Writes what an operator can see of the running krane to one file.
///
/// Whoever gets the file looks into it with --from: status, tree, explain, diff and events answer
/// as krane did then.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(super) struct SupportBundle {
    /// The file; a new one, - is stdout.
    #[arg(value_name = "FILE", default_value = "krane-support.json")]
    file: PathBuf,

    #[command(flatten)]
    admin: AdminFlags,
}

impl SupportBundle {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let mut answers = Map::new();
        for path in PATHS {
            answers.insert(path.to_owned(), self.admin.get(path).await?);
        }
        let all = format!("{WORKLOADS}?limit=1000000");
        let Told { shown, raw }: Told<told::Workloads> = fetch(&self.admin, &all).await?;
        let total = shown.total;
        for workload in shown.workloads.into_iter().take(PAGES) {
            let path = Found::from(workload).path();
            match self.admin.get(&path).await {
                Ok(page) => {
                    answers.insert(path, page);
                }
                // It went while the bundle was made.
                Err(AskError::Refused { code: 404, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        answers.insert(WORKLOADS.to_owned(), raw);
        let bundle = json!({
            "apiVersion": "krane/v1",
            "kind": "SupportBundle",
            "made_by": version::LONG,
            "answers": answers,
        });
        let text = format!("{bundle:#}\n");
        if self.file == Path::new("-") {
            return Ok(terminal.data(&text));
        }
        write(&self.file, &text)?;
        let file = printable(&self.file.display().to_string());
        let workloads = many(total, "workload");
        terminal.success(&format!(
            "{file} holds what krane shows of {workloads}; look into it with `krane status --from {file}`"
        ));
        Ok(ExitCode::from(exit::OK))
    }
}

/// For its owner only, and never over something that is there.
fn write(file: &Path, text: &str) -> Result<(), BundleError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options
        .open(file)
        .and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| BundleError::Write {
        file: file.to_owned(),
        error,
    })
}
