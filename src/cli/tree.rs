//! `krane tree`

use std::process::ExitCode;

use clap::Args;
use krane_domain::words::many;
use serde_json::Value;

use super::admin::{AskError, block_on};
use super::look::{Krane, LookFlags};
use super::named::fetch;
use super::output::Terminal;
use super::status::{Output, again};
use super::table::Table;
use super::told::{self, Now, Told, mark};

/// Shows the actors with their states, mailboxes, restarts and last errors.
#[derive(Debug, Args)]
pub(super) struct Tree {
    /// How to print it.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    /// Print it again every 2 s, until interrupted.
    #[arg(short, long, conflicts_with = "from")]
    watch: bool,

    #[command(flatten)]
    krane: LookFlags,
}

impl Tree {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, async {
            let krane = self.krane.open(terminal)?;
            again(terminal, self.watch, || self.once(&krane, terminal)).await
        })
    }

    async fn once(&self, krane: &Krane<'_>, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let Told { shown, mut raw }: Told<told::Tree> = fetch(krane, "/api/v1/tree").await?;
        let text = if self.output == Output::Json {
            raw["apiVersion"] = Value::from("krane/v1");
            raw["kind"] = Value::from("Tree");
            format!("{raw:#}\n")
        } else {
            self.words(&shown)
        };
        terminal.data(&text);
        let is_calm = shown.actors.iter().all(|it| told::is_calm(&it.level));
        Ok(told::exit_code(is_calm))
    }

    fn words(&self, tree: &told::Tree) -> String {
        let now = Now(tree.taken_at);
        let mut table = Table::new(&[
            "ACTOR",
            "",
            "STATE",
            "SINCE",
            "MAILBOX",
            "RESTARTS",
            "LAST ERROR",
        ]);
        for (index, actor) in tree.actors.iter().enumerate() {
            let name = match self.output {
                Output::Wide => actor.path.clone(),
                Output::Table | Output::Json => {
                    format!("{}{}", branch(&tree.actors, index), actor.name)
                }
            };
            let strategy = actor.strategy.as_ref().map(|it| format!(" ({it})"));
            let state = match actor.starts_at {
                Some(at) => format!("{}, starts again {}", actor.state, now.until(at)),
                None if actor.watches_broken > 0 => {
                    format!(
                        "{}, {} broken",
                        actor.state,
                        many(actor.watches_broken, "watch")
                    )
                }
                None => actor.state.clone(),
            };
            let trouble = actor
                .trouble
                .iter()
                .map(|it| format!("for {}: {}", now.ago(it.at), it.text));
            let error = actor
                .last_error
                .iter()
                .map(|it| format!("{} ago: {}", now.ago(it.at), it.text));
            let error: Vec<_> = trouble.chain(error).collect();
            table.row([
                name + &strategy.unwrap_or_default(),
                mark(&actor.level).to_owned(),
                state,
                now.ago(actor.since),
                actor.mailbox.as_ref().map_or_else(
                    || "–".to_owned(),
                    |it| format!("{}/{}", it.depth, it.capacity),
                ),
                actor.restarts.to_string(),
                error.join("; "),
            ]);
        }
        table.text()
    }
}

/// What stands before an actor's name in a drawn tree.
fn branch(actors: &[told::Actor], index: usize) -> String {
    let Some(actor) = actors.get(index) else {
        return String::new();
    };
    let later = actors.get(index + 1..).unwrap_or_default();
    // Whether another one hangs at this depth below the same parent.
    let goes_on = |depth: usize| {
        let next = later.iter().find(|it| it.depth <= depth);
        next.is_some_and(|it| it.depth == depth)
    };
    // Nobody is deeper than those before it are many.
    let own = actor.depth.min(index);
    (1..=own)
        .map(|depth| match (depth == own, goes_on(depth)) {
            (true, true) => "├── ",
            (true, false) => "└── ",
            (false, true) => "│   ",
            (false, false) => "    ",
        })
        .collect()
}
