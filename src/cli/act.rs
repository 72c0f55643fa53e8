//! `krane resync`, `krane retry`, `krane hold`, `krane writes` and `krane log-level`

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use krane_admin::operate;
use krane_domain::ids;
use krane_settings::parse_duration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::admin::{AdminFlags, AskError, block_on};
use super::exit;
use super::named::Named;
use super::output::{Terminal, printable};

/// Has the control plane asked about every object now, instead of within a minute.
///
/// Needs admin.actions, and its token.
#[derive(Debug, Args)]
pub(super) struct Resync {
    /// Of this controller; of all when absent.
    #[arg(value_name = "CONTROLLER", value_parser = ids::Controller::ALL.map(ids::Controller::name))]
    controller: Option<String>,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Has what waits for its next try tried at once: one workload, or everything with --all.
///
/// Needs admin.actions, and its token.
#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    named: Option<Named>,

    /// Everything that waits.
    #[arg(long, conflicts_with = "name", required_unless_present = "name")]
    all: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Has krane keep its hands off a workload for a while: nothing of it is repaired or applied.
///
/// A workload that is wanted gone is deleted all the same. Needs admin.actions, and its token.
#[derive(Debug, Args)]
pub(super) struct Hold {
    #[command(flatten)]
    named: Named,

    /// For how long, at most 24 h: 30m, 2h.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = duration)]
    time: Duration,

    /// End the hold.
    #[arg(long, conflicts_with = "time")]
    release: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Stops all writes of the running krane, or allows them again; reports and secrets go on.
///
/// It holds until that process ends: safety.writes is what the next one begins with. Needs
/// admin.actions, and its token.
#[derive(Debug, Args)]
pub(super) struct Writes {
    /// Whether krane may write.
    #[arg(value_enum)]
    switch: Switch,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Changes the level of the running krane's log lines, until that process ends.
///
/// Needs admin.actions, and its token.
#[derive(Debug, Args)]
pub(super) struct LogLevel {
    /// Such as debug, or warn,krane=debug.
    #[arg(value_name = "LEVEL")]
    level: String,

    #[command(flatten)]
    admin: AdminFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Deserialize)]
struct Done {
    done: String,
}

/// `2h`, `1h30m`: up to a day.
fn duration(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).filter(|time| !time.is_zero());
    let time = time.ok_or("a time such as 30m or 2h")?;
    let is_allowed = time <= Duration::from_hours(24);
    is_allowed
        .then_some(time)
        .ok_or_else(|| "at most 24h".to_owned())
}

async fn act(admin: &AdminFlags, terminal: &Terminal, action: Value) -> Result<ExitCode, AskError> {
    let done: Done = admin
        .post(operate::ACTIONS, operate::ACTION, &action)
        .await?;
    terminal.success(&printable(&done.done));
    Ok(ExitCode::from(exit::OK))
}

impl Resync {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let action = json!({"action": "resync", "controller": self.controller});
        block_on(terminal, act(&self.admin, terminal, action))
    }
}

impl Retry {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, async {
            let action = match &self.named {
                Some(named) => {
                    let found = named.find(&self.admin).await?;
                    let workload = format!("{}/{}", found.namespace, found.name);
                    json!({
                        "action": "retry",
                        "controller": found.controller,
                        "workload": workload,
                    })
                }
                None => json!({"action": "retry"}),
            };
            act(&self.admin, terminal, action).await
        })
    }
}

impl Hold {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, async {
            let found = self.named.find(&self.admin).await?;
            // By krane's own clock, which is the one that the hold is read by.
            let taken: super::told::Taken = self.admin.get("/api/v1/health").await?;
            let until = taken.taken_at.checked_add(self.time).ok();
            let until = until.filter(|_| !self.release);
            let action = json!({
                "action": "hold",
                "controller": found.controller,
                "workload": format!("{}/{}", found.namespace, found.name),
                "until": until.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            });
            act(&self.admin, terminal, action).await
        })
    }
}

impl LogLevel {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let action = json!({"action": "log_level", "level": self.level});
        block_on(terminal, act(&self.admin, terminal, action))
    }
}

impl Writes {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let action = json!({"action": "writes", "on": self.switch == Switch::On});
        block_on(terminal, act(&self.admin, terminal, action))
    }
}
