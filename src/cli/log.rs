//! `krane log`

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::admin::{AskError, block_on, pause};
use super::exit;
use super::look::LookFlags;
use super::named::{escaped, fetch};
use super::output::{Output, Terminal};
use super::told::{self, Told, mark};

/// How often new lines are asked for.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the last lines of krane's log that are still known, the newest last.
#[derive(Debug, Args)]
pub(super) struct Log {
    /// Only those with all of these words in level, target, text or fields.
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Only warnings and errors.
    #[arg(long)]
    warnings: bool,

    /// Go on until interrupted.
    #[arg(short, long, conflicts_with = "from")]
    watch: bool,

    /// How to print them.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,

    #[command(flatten)]
    krane: LookFlags,
}

impl Log {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let krane = self.krane.open(terminal)?;
        let filter = escaped(&self.words.join(" "));
        let mut after = 0;
        loop {
            let path = format!("/api/v1/log?after={after}&filter={filter}");
            let Told { shown, raw }: Told<told::Log> = fetch(&krane, &path).await?;
            let newest = shown.lines.iter().map(|line| line.number).max();
            after = newest.unwrap_or(after);
            let is_shown = |line: &told::LogLine| {
                !self.warnings || matches!(line.level.as_str(), "error" | "warn")
            };
            let text = match self.output {
                Output::Text => lines(shown.lines.iter().filter(|line| is_shown(line)).rev()),
                Output::Json => {
                    let all = raw["lines"].as_array().map_or(&[][..], Vec::as_slice);
                    let all = all.iter().zip(&shown.lines).filter(|(_, it)| is_shown(it));
                    let all: Vec<_> = all.map(|(raw, _)| raw).rev().collect();
                    if self.watch {
                        all.iter()
                            .fold(String::new(), |text, line| text + &line.to_string() + "\n")
                    } else {
                        let list =
                            json!({"apiVersion": "krane/v1", "kind": "LogLineList", "items": all});
                        format!("{list:#}\n")
                    }
                }
            };
            if !text.is_empty() {
                terminal.data(&text);
            }
            if !self.watch {
                return Ok(ExitCode::from(exit::OK));
            }
            pause(EVERY).await;
        }
    }
}

fn lines<'a>(lines: impl Iterator<Item = &'a told::LogLine>) -> String {
    let mut text = String::new();
    for line in lines {
        let mark = match line.level.as_str() {
            "error" => mark("bad"),
            "warn" => mark("warn"),
            _ => " ",
        };
        let at = line.at.strftime("%H:%M:%S");
        let _ = writeln!(text, "  {at} {mark} {}  {}", line.text, line.fields);
    }
    text
}
