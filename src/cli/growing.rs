//! Lists that grow while they are read: what happened, and what was logged.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::admin::{AskError, pause};
use super::exit;
use super::look::LookFlags;
use super::named::{escaped, fetch};
use super::output::{Output, Terminal};
use super::told::{Numbered, Told};

/// How often what is new is asked for.
const EVERY: Duration = Duration::from_secs(1);

/// How a person wants such a list.
#[derive(Debug, Args)]
pub(super) struct GrowingFlags {
    /// Only what is not as it should be.
    #[arg(long)]
    pub(super) warnings: bool,

    /// Go on until interrupted.
    #[arg(short, long, conflicts_with = "from")]
    watch: bool,

    /// How to print them; json is one object per line with --watch.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,

    #[command(flatten)]
    krane: LookFlags,
}

/// One of those lists.
pub(super) struct Growing {
    /// Where the API has it.
    pub(super) path: &'static str,
    /// What the API calls it.
    pub(super) name: &'static str,
    /// What it is called in `-o json`.
    pub(super) kind: &'static str,
}

#[derive(Deserialize)]
struct Items<T> {
    #[serde(alias = "events", alias = "lines")]
    items: Vec<T>,
}

impl GrowingFlags {
    /// Prints the items that have all these words and are to be shown, the newest last: once, or
    /// until interrupted.
    pub(super) async fn print<T: DeserializeOwned + Numbered>(
        &self,
        list: &Growing,
        words: &[String],
        terminal: &Terminal,
        is_shown: impl Fn(&T) -> bool,
        lines: impl Fn(&[&T]) -> String,
    ) -> Result<ExitCode, AskError> {
        let krane = self.krane.open(terminal)?;
        let (path, filter) = (list.path, escaped(&words.join(" ")));
        let mut after = 0;
        loop {
            let asked = format!("{path}?after={after}&filter={filter}");
            let Told { shown, raw }: Told<Items<T>> = fetch(&krane, &asked).await?;
            after = shown.items.first().map_or(after, T::number);
            let all = raw[list.name].as_array().map_or(&[][..], Vec::as_slice);
            // They come with the newest first.
            let both = shown.items.iter().zip(all).rev();
            let (shown, raw): (Vec<&T>, Vec<&Value>) = both.filter(|(it, _)| is_shown(it)).unzip();
            let text = match (self.output, self.watch) {
                (Output::Text, _) => lines(&shown),
                (Output::Json, true) => raw
                    .iter()
                    .fold(String::new(), |text, item| text + &item.to_string() + "\n"),
                (Output::Json, false) => {
                    let kind = list.kind;
                    let all = json!({"apiVersion": "krane/v1", "kind": kind, "items": raw});
                    format!("{all:#}\n")
                }
            };
            if !text.is_empty() {
                terminal.data(&text);
            }
            if !self.watch {
                if shown.is_empty() {
                    terminal.note("nothing of that is remembered");
                }
                return Ok(ExitCode::from(exit::OK));
            }
            pause(EVERY).await;
        }
    }
}
