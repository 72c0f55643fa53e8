//! `krane status`

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use krane_domain::words::many;
use serde_json::json;

use super::admin::{AskError, block_on, pause};
use super::look::{Krane, LookFlags};
use super::named::{escaped, fetch};
use super::output::Terminal;
use super::table::Table;
use super::told::{self, Now, Told, mark};

/// How often a followed status is printed.
const EVERY: Duration = Duration::from_secs(2);
/// Workloads that are listed unless `-o wide` asks for all.
const LISTED: usize = 20;

/// Shows how krane is: well, or what is wrong, why and what to do.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Only workloads with all of these words in namespace, name, id or state.
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// How to print it; wide lists every workload.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    /// Print it again every 2 s, until interrupted.
    #[arg(short, long, conflicts_with = "from")]
    watch: bool,

    #[command(flatten)]
    krane: LookFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Table,
    Wide,
    Json,
}

/// Looks once, or again and again where it is to be watched.
pub(super) async fn again<F>(
    terminal: &Terminal,
    watch: bool,
    look: impl Fn() -> F,
) -> Result<ExitCode, AskError>
where
    F: Future<Output = Result<ExitCode, AskError>>,
{
    loop {
        let code = look().await?;
        if !watch {
            return Ok(code);
        }
        pause(EVERY).await;
        terminal.data("\n");
    }
}

impl Status {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, async {
            let krane = self.krane.open(terminal)?;
            again(terminal, self.watch, || self.once(&krane, terminal)).await
        })
    }

    async fn once(&self, krane: &Krane<'_>, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let filter = escaped(&self.words.join(" "));
        let health: Told<told::Health> = fetch(krane, "/api/v1/health").await?;
        let controllers: Told<told::Controllers> = fetch(krane, "/api/v1/controllers").await?;
        let limit = match (self.output, self.words.is_empty()) {
            (Output::Table, true) => LISTED,
            (Output::Table | Output::Wide | Output::Json, _) => 100_000,
        };
        let path = format!("/api/v1/workloads?limit={limit}&filter={filter}");
        let workloads: Told<told::Workloads> = fetch(krane, &path).await?;
        let text = if self.output == Output::Json {
            let status = json!({
                "apiVersion": "krane/v1",
                "kind": "Status",
                "health": health.raw,
                "controllers": controllers.raw["controllers"],
                "workloads": workloads.raw,
            });
            format!("{status:#}\n")
        } else {
            self.words(&health.shown, &controllers.shown, &workloads.shown)
        };
        terminal.data(&text);
        let is_calm = told::is_calm(&health.shown.level);
        Ok(told::exit_code(is_calm))
    }

    fn words(
        &self,
        health: &told::Health,
        controllers: &told::Controllers,
        workloads: &told::Workloads,
    ) -> String {
        let now = Now(health.taken_at);
        let mut text = headline(health, now);
        text.push('\n');
        text += &controllers_table(controllers, now);
        let all = self.output == Output::Wide || !self.words.is_empty();
        let listed: Vec<_> = workloads
            .workloads
            .iter()
            .filter(|it| all || it.level != "good")
            .collect();
        let is_well = told::is_calm(&health.level);
        let all_of_them = many(workloads.total, "workload");
        let _ = match (listed.len(), workloads.matching == workloads.total) {
            (0, true) if !is_well && workloads.total == 0 => {
                writeln!(text, "\nno workload is known")
            }
            (0, true) if !is_well => {
                writeln!(text, "\n{all_of_them}, all in place when last seen")
            }
            (0, true) => writeln!(text, "\n{all_of_them}, all in place"),
            (_, true) => writeln!(text, "\n{all_of_them}"),
            (_, false) => {
                let verb = if workloads.matching == 1 {
                    "matches"
                } else {
                    "match"
                };
                writeln!(text, "\n{} of {all_of_them} {verb}", workloads.matching)
            }
        };
        text + &workloads_table(&listed, Now(workloads.taken_at))
    }
}

/// The sentence, and each problem with why and what to do.
fn headline(health: &told::Health, now: Now) -> String {
    let mut text = format!("{} {}\n", mark(&health.level), health.sentence);
    let told::Identity {
        instance,
        region,
        platform,
        short_version,
    } = &health.identity;
    let _ = writeln!(
        text,
        "  {instance}, {region} ({platform}), krane {short_version}"
    );
    if let Some(lease) = &health.lease {
        let holder = lease.holder.as_deref().unwrap_or("–");
        let since = now.ago(lease.since);
        let _ = writeln!(
            text,
            "  {} for {since}, the lease is held by {holder}",
            lease.role
        );
    }
    if let Some(secrets) = &health.secrets {
        let told::Secrets {
            unproved_because,
            unproved,
        } = secrets;
        let _ = match unproved_because {
            None => writeln!(text, "  secrets: pods are compared with the desired state"),
            Some(why) => writeln!(
                text,
                "  secrets: pods are not compared with the desired state: {why}"
            ),
        };
        if *unproved > 0 {
            let _ = writeln!(
                text,
                "  secrets: {unproved} given without that proof so far"
            );
        }
    }
    for problem in &health.problems {
        let _ = writeln!(text, "\n{} {}", mark(&problem.level), problem.what);
        if let Some(since) = problem.since {
            let _ = writeln!(text, "  ├ since {}", now.ago(since));
        }
        if let Some(why) = &problem.why {
            let _ = writeln!(text, "  ├ why   {why}");
        }
        let next = problem.next_try.map(|at| now.until(at));
        if let Some(next) = next {
            let _ = writeln!(text, "  ├ next  try {next}");
        }
        let _ = writeln!(text, "  ╰ help  {}", problem.remedy);
    }
    if health.more > 0 {
        let _ = writeln!(text, "\n  and {} more", health.more);
    }
    text
}

fn controllers_table(told: &told::Controllers, now: Now) -> String {
    let mut table = Table::new(&[
        "CONTROLLER",
        "STREAM",
        "CURSOR",
        "LAG",
        "WORK",
        "SET ASIDE",
        "ON HOLD",
        "BREAKER",
        "REPORTS",
        "RESYNC",
    ]);
    for it in &told.controllers {
        let stream = match (
            it.stream.connected,
            it.stream.connected_since,
            it.stream.lost_at,
        ) {
            (true, Some(at), _) => format!("open {}", now.ago(at)),
            (true, None, _) => "open".to_owned(),
            (false, _, Some(at)) => format!("lost {} ago", now.ago(at)),
            (false, _, None) => "not open".to_owned(),
        };
        let reports = match (it.has_reports, it.reports_undelivered) {
            (false, _) => "–".to_owned(),
            (true, 0) => "delivered".to_owned(),
            (true, many) => format!("{many} waiting"),
        };
        let resync = it.resync.as_ref();
        table.row([
            it.name.clone(),
            stream,
            format!("{} of {}", it.cursor, it.newest),
            it.lag.to_string(),
            match it.to_upgrade {
                0 => format!("{} at work, {} queued", it.in_flight, it.queued),
                more => format!(
                    "{} at work, {} queued, {more} to upgrade",
                    it.in_flight, it.queued
                ),
            },
            it.quarantined.saturating_sub(it.on_hold).to_string(),
            it.on_hold.to_string(),
            it.breaker.clone(),
            reports,
            resync.map_or_else(
                || "not yet".to_owned(),
                |pass| format!("{} ago", now.ago(pass.ended_at)),
            ),
        ]);
    }
    table.text()
}

fn workloads_table(workloads: &[&told::Workload], now: Now) -> String {
    if workloads.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "",
        "KIND",
        "NAMESPACE",
        "NAME",
        "VERSION",
        "READY",
        "STATE",
        "WHY",
    ]);
    for it in workloads {
        let ready = match it.replicas {
            Some(wanted) => format!("{}/{wanted}", it.ready),
            None if it.ready > 0 => it.ready.to_string(),
            None => "–".to_owned(),
        };
        let next = it
            .next_try
            .map(|at| format!(", next try {}", now.until(at)));
        table.row([
            mark(&it.level).to_owned(),
            it.kind.clone(),
            it.namespace.clone(),
            it.name.clone(),
            it.version.to_string(),
            ready,
            format!("{}{}", it.state, next.unwrap_or_default()),
            it.why.clone().unwrap_or_default(),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests;
