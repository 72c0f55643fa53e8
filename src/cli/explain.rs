//! `krane explain` and `krane diff`

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::admin::{AskError, block_on};
use super::events;
use super::exit;
use super::look::LookFlags;
use super::named::{Named, fetch};
use super::output::{Output, Terminal};
use super::told::{self, Now, Told, mark};

/// Events that are told of one workload.
const EVENTS: usize = 10;

/// Says why a workload is as it is: what is wanted, what was done, what differs and who owns that.
#[derive(Debug, Args)]
pub(super) struct Explain {
    #[command(flatten)]
    named: Named,

    /// How to print it.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,

    #[command(flatten)]
    krane: LookFlags,
}

/// Shows in which fields a workload's objects are not as wanted, and who owns those.
///
/// Lines with - are live, lines with + wanted. Ends with 0 when nothing differs, and with 1 when
/// something does, or when that cannot be told.
#[derive(Debug, Args)]
pub(super) struct Diff {
    #[command(flatten)]
    named: Named,

    /// How to print it.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,

    #[command(flatten)]
    krane: LookFlags,
}

impl Explain {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let krane = self.krane.open(terminal)?;
        let found = self.named.find(&krane).await?;
        let Told { shown, mut raw }: Told<told::Object> = fetch(&krane, &found.path()).await?;
        terminal.data(&match self.output {
            Output::Text => words(&shown),
            Output::Json => {
                raw["apiVersion"] = Value::from("krane/v1");
                raw["kind"] = Value::from("Explanation");
                format!("{raw:#}\n")
            }
        });
        let is_calm = told::is_calm(&shown.workload.level) && shown.blind_since.is_none();
        Ok(told::exit_code(is_calm))
    }
}

fn words(object: &told::Object) -> String {
    let now = Now(object.taken_at);
    let it = &object.workload;
    let level = if object.blind_since.is_some() {
        "warn"
    } else {
        &it.level
    };
    let mut text = format!(
        "{} {}/{}  {}\n  {}\n",
        mark(level),
        it.namespace,
        it.name,
        it.kind,
        object.verdict,
    );
    if let Some(remedy) = &it.remedy {
        let _ = writeln!(text, "  ╰ help  {remedy}");
    }
    text += "\nWhy\n";
    for step in &object.chain {
        let when = step.at.map(|at| format!("{} ago", now.ago(at)));
        let next = step
            .next_try
            .map(|at| format!(", next try {}", now.until(at)));
        let _ = writeln!(
            text,
            "  {} {:<9} {:>10}  {}{}",
            mark(&step.level),
            step.step,
            when.unwrap_or_default(),
            step.text,
            next.unwrap_or_default(),
        );
    }
    text += "\nObjects\n";
    for part in &object.objects {
        text += &part_line(part, now);
        text += &differences(part);
    }
    if !object.events.is_empty() {
        text += "\nWhat happened\n";
        let lately = object.events.iter().take(EVENTS).rev();
        text += &events::lines(lately, false);
    }
    if !object.commands.is_empty() {
        text += "\nMore\n";
        for command in &object.commands {
            let _ = writeln!(text, "  {command}");
        }
    }
    text
}

fn part_line(part: &told::Part, now: Now) -> String {
    let why = part.why.as_deref().map(|why| format!(": {why}"));
    let ends = part
        .hold_ends
        .map(|at| format!(", the hold ends {}", now.until(at)));
    let (mark, object) = (mark(&part.level), &part.object);
    format!(
        "  {mark} {object} is {}{}{}\n",
        part.state,
        why.unwrap_or_default(),
        ends.unwrap_or_default()
    )
}

fn differences(part: &told::Part) -> String {
    let mut text = String::new();
    for found in &part.differences {
        let path = match found.path.as_str() {
            "" => "the whole object".to_owned(),
            path => path.to_owned(),
        };
        let owners = match found.owners.as_slice() {
            [] => "krane or nobody".to_owned(),
            owners => owners.join(", "),
        };
        let _ = writeln!(text, "      {path}   owned by {owners}");
        match (&found.live, &found.wanted) {
            (None, None) => {
                let _ = writeln!(text, "        {}", found.kind.replace('_', " "));
            }
            (live, wanted) => {
                for (sign, value) in [('-', live), ('+', wanted)] {
                    if let Some(value) = value {
                        let _ = writeln!(text, "      {sign} {value}");
                    }
                }
            }
        }
    }
    for foreign in &part.foreign {
        let manager = &foreign.manager;
        for path in &foreign.paths {
            let _ = writeln!(text, "      {path}   owned by {manager}");
        }
    }
    text
}

impl Diff {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let krane = self.krane.open(terminal)?;
        let found = self.named.find(&krane).await?;
        let Told { shown, raw }: Told<told::Object> = fetch(&krane, &found.path()).await?;
        let differs = |part: &&told::Part| {
            !part.differences.is_empty() || !part.foreign.is_empty() || part.state == "missing"
        };
        let parts: Vec<_> = shown.objects.iter().filter(differs).collect();
        let now = Now(shown.taken_at);
        terminal.data(&match self.output {
            Output::Text => parts
                .iter()
                .map(|part| part_line(part, now) + &differences(part))
                .collect::<String>(),
            Output::Json => {
                let diff = json!({
                    "apiVersion": "krane/v1",
                    "kind": "Diff",
                    "taken_at": raw["taken_at"],
                    "differing": shown.differing,
                    "objects": raw["objects"],
                });
                format!("{diff:#}\n")
            }
        });
        // Of a state that is none nobody knows what it wants.
        let is_compared = shown.objects.iter().all(|part| part.state != "as it was");
        let is_sure = shown.blind_since.is_none() && is_compared;
        if parts.is_empty() && is_sure {
            terminal.success(&format!("nothing differs: {}", shown.verdict));
            return Ok(ExitCode::from(exit::OK));
        }
        if !is_sure || !told::is_calm(&shown.workload.level) {
            terminal.note(&shown.verdict);
            if let Some(remedy) = &shown.workload.remedy {
                terminal.help(remedy);
            }
        }
        Ok(ExitCode::from(exit::FINDINGS))
    }
}
