//! `krane allow-deletes`

use std::process::ExitCode;

use clap::Args;
use krane_admin::operate;
use krane_domain::ids;
use serde::Deserialize;

use super::admin::{AdminFlags, AskError, block_on};
use super::exit;
use super::output::{Terminal, printable};

/// Shows the deletions that the brake holds, and with `--yes` lets them go.
#[derive(Debug, Args)]
pub(super) struct AllowDeletes {
    /// Whose deletions.
    #[arg(value_name = "CONTROLLER", value_parser = ids::Controller::ALL.map(ids::Controller::name))]
    controller: String,

    /// Delete them now.
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

#[derive(Deserialize)]
struct Controller {
    deletes_held: Vec<String>,
}

#[derive(Deserialize)]
struct Allowed {
    deleted: Vec<String>,
}

impl AllowDeletes {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        if self.yes {
            let path = operate::path(&self.controller);
            let allowed: Allowed = self
                .admin
                .post(&path, operate::CONFIRMATION, &serde_json::Value::Null)
                .await?;
            terminal.data(&lines(&allowed.deleted));
            terminal.success(&format!("{} deleted", objects(allowed.deleted.len())));
            return Ok(ExitCode::from(exit::OK));
        }
        let path = format!("/api/v1/controllers/{}", self.controller);
        let controller: Controller = self.admin.get(&path).await?;
        let held = controller.deletes_held;
        terminal.data(&lines(&held));
        if held.is_empty() {
            terminal.success("no deletion is held");
            return Ok(ExitCode::from(exit::OK));
        }
        terminal.success(&format!(
            "{} held because the control plane does not know them any more; --yes deletes them",
            objects(held.len())
        ));
        Ok(ExitCode::from(exit::FINDINGS))
    }
}

/// One key in a line, and nothing in it that a terminal would obey.
fn lines(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| printable(key)).collect();
    let mut text = keys.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn objects(count: usize) -> String {
    match count {
        1 => "1 object".to_owned(),
        many => format!("{many} objects"),
    }
}
