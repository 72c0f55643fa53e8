//! `krane support-bundle`, and how it is looked into.
//!
//! A bundle is what the API answered, under the paths that were asked: the verbs that look at a
//! running krane find the same in it. The API tells no secret, and so no bundle holds one.

pub(super) mod kept;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kept::BundleError;
use krane_domain::words::many;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::admin::{AdminFlags, AskError, block_on};
use super::exit;
use super::named::{Found, fetch};
use super::output::{Terminal, printable};
use super::told::{self, Told};
use crate::version;

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
/// After so long no more pages are asked for.
const PATIENCE: Duration = Duration::from_secs(60);

const MORE: &str = "\
A bundle is one JSON file with what the page shows: the problems, the tree, the controllers, all workloads, the \
pages of the first 200 (those in trouble come first), events, the last hour and the last log lines. It holds no \
secret; it does hold the names of workloads, addresses of pods, and values of fields that differ.

  krane support-bundle
  krane status --from krane-support.json
  krane explain web --from krane-support.json";

/// Writes what an operator can see of the running krane to one file.
///
/// Whoever gets the file looks into it with --from: status, tree, explain, diff, events and log
/// answer as krane did then.
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
        let is_stdout = self.file == Path::new("-");
        // Nobody wants to hear of it when all is gathered.
        if !is_stdout && self.file.symlink_metadata().is_ok() {
            let file = self.file.clone();
            return Err(BundleError::Exists { file }.into());
        }
        let gathered = self.gather().await?;
        let missing = gathered.missing.len();
        let total = gathered.workloads;
        let bundle = json!({
            "apiVersion": "krane/v1",
            "kind": "SupportBundle",
            "made_by": version::LONG,
            "answers": gathered.answers,
            "missing": gathered.missing,
        });
        let text = format!("{bundle:#}\n");
        if is_stdout {
            terminal.data(&text);
        } else {
            write(&self.file, &text)?;
            let file = printable(&self.file.display().to_string());
            let workloads = many(total, "workload");
            terminal.success(&format!(
                "{file} holds what krane shows of {workloads}; look into it with `krane status --from {file}`"
            ));
        }
        if missing > 0 {
            terminal.note(&format!(
                "{missing} of the answers are missing; the bundle says why"
            ));
            return Ok(ExitCode::from(exit::FINDINGS));
        }
        Ok(ExitCode::from(exit::OK))
    }

    /// Asks for everything. Only who answers nothing at all, or may not be asked, is a failure: a
    /// bundle is made when things are not well.
    async fn gather(&self) -> Result<Gathered, AskError> {
        let mut gathered = Gathered::default();
        let [first, others @ ..] = PATHS;
        let answer = self.admin.get(first).await?;
        gathered.answers.insert(first.to_owned(), answer);
        let end = Instant::now() + PATIENCE;
        for path in others {
            gathered.keep(path.to_owned(), self.admin.get(path).await);
        }
        let all = format!("{WORKLOADS}?limit=1000000");
        let list: Result<Told<told::Workloads>, _> = fetch(&self.admin, &all).await;
        let list = match list {
            Ok(Told { shown, raw }) => {
                gathered.keep(WORKLOADS.to_owned(), Ok(raw));
                gathered.workloads = shown.total;
                shown.workloads
            }
            Err(error) => {
                gathered.keep(WORKLOADS.to_owned(), Err(error));
                Vec::new()
            }
        };
        for workload in list.into_iter().take(PAGES) {
            let path = Found::from(workload).path();
            if Instant::now() >= end {
                let why = "krane took too long to answer everything".to_owned();
                gathered.missing.insert(path, why);
            } else {
                let page = self.admin.get(&path).await;
                gathered.keep(path, page);
            }
        }
        Ok(gathered)
    }
}

/// What was answered, and what was not.
#[derive(Default)]
struct Gathered {
    answers: Map<String, Value>,
    missing: BTreeMap<String, String>,
    workloads: usize,
}

impl Gathered {
    fn keep(&mut self, path: String, answer: Result<Value, AskError>) {
        match answer {
            Ok(answer) => {
                self.answers.insert(path, answer);
            }
            // It went while the bundle was made.
            Err(AskError::Refused { code: 404, .. }) if path.starts_with(WORKLOADS) => {}
            Err(error) => {
                self.missing.insert(path, error.to_string());
            }
        }
    }
}

/// For its owner only, never over something that is there, and whole or not at all.
fn write(file: &Path, text: &str) -> Result<(), BundleError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let failed = |error| BundleError::Write {
        file: file.to_owned(),
        error,
    };
    let mut open = options.open(file).map_err(failed)?;
    let written = open
        .write_all(text.as_bytes())
        .and_then(|()| open.sync_all());
    written.map_err(|error| {
        // Half of it would be in the way of the next one. That it stays is told by the next one.
        let _ = std::fs::remove_file(file);
        failed(error)
    })
}
