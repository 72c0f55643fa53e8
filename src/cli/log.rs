//! `krane log`

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::admin::{AskError, block_on};
use super::growing::{Growing, GrowingFlags};
use super::output::Terminal;
use super::told::{self, mark};

/// Shows the last lines of krane's log that are still known, the newest last.
#[derive(Debug, Args)]
pub(super) struct Log {
    /// Only those with all of these words in level, target, text or fields.
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    #[command(flatten)]
    list: GrowingFlags,
}

impl Log {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let list = Growing {
            path: "/api/v1/log",
            name: "lines",
            kind: "LogLineList",
        };
        let is_shown = |line: &told::LogLine| !self.list.warnings || mark_of(line) != CALM;
        self.list
            .print(&list, &self.words, terminal, is_shown, lines)
            .await
    }
}

/// The mark of a line that is no warning.
const CALM: &str = " ";

fn mark_of(line: &told::LogLine) -> &'static str {
    match line.level.as_str() {
        "error" => mark("bad"),
        "warn" => mark("warn"),
        _ => CALM,
    }
}

fn lines(lines: &[&told::LogLine]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let (at, mark) = (line.at.strftime("%H:%M:%S"), mark_of(line));
        let _ = writeln!(text, "  {at} {mark} {}  {}", line.text, line.fields);
        text
    })
}
