//! The command line: what a person types and reads. Data goes to stdout, chatter to stderr.

mod act;
mod admin;
mod allow_deletes;
mod bundle;
mod check;
mod check_config;
mod completion;
mod config;
mod duration;
mod events;
pub mod exit;
mod explain;
mod flags;
mod growing;
mod log;
mod look;
mod man;
mod named;
mod output;
mod render;
mod run;
mod status;
mod table;
mod told;
mod tree;
mod vault;
mod version_verb;

use std::ffi::OsString;
use std::process::ExitCode;

use act::{Hold, LogLevel, Resync, Retry, Writes};
use allow_deletes::AllowDeletes;
use bundle::SupportBundle;
use check::Check;
use check_config::CheckConfig;
use clap::{Parser, Subcommand};
use completion::Completion;
use config::Config;
pub use duration::duration;
use krane_settings::LoadInput;

use crate::run::World;
use crate::version;

use events::Events;
use explain::{Diff, Explain};
use log::Log;
use man::Man;
pub use output::Terminal;
use render::Render;
pub use run::Failure;
use run::Run;
use status::Status;
use tree::Tree;
use vault::Vault;
use version_verb::Version;

/// Keeps one Kubernetes cluster equal to what the control plane wants.
#[derive(Debug, Parser)]
#[command(
    name = "krane",
    version = version::LONG,
    disable_help_subcommand = true,
    after_help = exit::HELP
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start the agent.
    Run(Run),
    /// Say whether krane would run here, and if not, why.
    Check(Check),
    /// Check the configuration and start nothing.
    CheckConfig(CheckConfig),
    /// Show how the running krane is, and what to do if it is not well.
    Status(Status),
    /// Show the actors of the running krane.
    Tree(Tree),
    /// Say why a workload is as it is.
    Explain(Explain),
    /// Show where a workload's objects are not as wanted, and who owns those fields.
    Diff(Diff),
    /// Show what happened lately.
    Events(Events),
    /// Show the last lines of the log.
    Log(Log),
    /// Keep what an operator can see in one file, for somebody who cannot look here.
    SupportBundle(SupportBundle),
    /// Ask the control plane about every object now.
    Resync(Resync),
    /// Try at once what waits for its next try.
    Retry(Retry),
    /// Keep the hands off a workload for a while.
    Hold(Hold),
    /// Stop all writes, or allow them again.
    Writes(Writes),
    /// Change the level of log lines.
    LogLevel(LogLevel),
    /// Let go of the deletions that the brake holds.
    AllowDeletes(AllowDeletes),
    /// Look after the vault.
    Vault(Vault),
    /// Print the manifests that krane would write for given states.
    Render(Render),
    /// Print what a configuration may hold.
    Config(Config),
    /// Print a script that completes the verbs and flags of krane in a shell.
    Completion(Completion),
    /// Print the manual.
    Man(Man),
    /// Print name, version, commit and compiler.
    Version(Version),
}

/// Runs the verb on the command line and returns the exit code of the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    main_in(arguments, |world| world)
}

/// The same, with an agent that is connected to what `alter` makes of the world outside.
pub fn main_in(
    arguments: impl IntoIterator<Item = OsString>,
    alter: fn(World) -> World,
) -> ExitCode {
    let process = LoadInput::from_process();
    let terminal = Terminal::of_process(&process.env);
    match Cli::try_parse_from(arguments) {
        Ok(Cli {
            verb: Verb::Run(run),
        }) => run.execute(process, &terminal, alter),
        Ok(Cli {
            verb: Verb::Check(check),
        }) => check.execute(process, &terminal),
        Ok(Cli {
            verb: Verb::CheckConfig(check),
        }) => check.execute(process, &terminal),
        Ok(Cli {
            verb: Verb::Status(status),
        }) => status.execute(&terminal),
        Ok(Cli {
            verb: Verb::Tree(tree),
        }) => tree.execute(&terminal),
        Ok(Cli {
            verb: Verb::Explain(explain),
        }) => explain.execute(&terminal),
        Ok(Cli {
            verb: Verb::Diff(diff),
        }) => diff.execute(&terminal),
        Ok(Cli {
            verb: Verb::Events(events),
        }) => events.execute(&terminal),
        Ok(Cli {
            verb: Verb::Log(log),
        }) => log.execute(&terminal),
        Ok(Cli {
            verb: Verb::SupportBundle(bundle),
        }) => bundle.execute(&terminal),
        Ok(Cli {
            verb: Verb::Resync(resync),
        }) => resync.execute(&terminal),
        Ok(Cli {
            verb: Verb::Retry(retry),
        }) => retry.execute(&terminal),
        Ok(Cli {
            verb: Verb::Hold(hold),
        }) => hold.execute(&terminal),
        Ok(Cli {
            verb: Verb::Writes(writes),
        }) => writes.execute(&terminal),
        Ok(Cli {
            verb: Verb::LogLevel(level),
        }) => level.execute(&terminal),
        Ok(Cli {
            verb: Verb::AllowDeletes(allow),
        }) => allow.execute(&terminal),
        Ok(Cli {
            verb: Verb::Vault(vault),
        }) => vault.execute(process, &terminal),
        Ok(Cli {
            verb: Verb::Render(render),
        }) => render.execute(process, &terminal),
        Ok(Cli {
            verb: Verb::Config(config),
        }) => config.execute(&terminal),
        Ok(Cli {
            verb: Verb::Completion(completion),
        }) => completion.execute(&terminal),
        Ok(Cli {
            verb: Verb::Man(man),
        }) => man.execute(&terminal),
        Ok(Cli {
            verb: Verb::Version(version),
        }) => version.execute(&terminal),
        Err(usage) => refused(&usage),
    }
}

/// Prints what the parser has to say of a command line, and returns its exit code. Help and `--version` are errors of the
/// parser too, with exit code 0.
pub fn refused(usage: &clap::Error) -> ExitCode {
    // An output that is closed cannot be told so.
    let _ = usage.print();
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(exit::USAGE))
}

#[cfg(test)]
mod tests;
