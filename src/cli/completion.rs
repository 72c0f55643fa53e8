//! `krane completion`

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, ValueEnum};

use super::output::Terminal;

const MORE: &str = "\
Where it goes:
  bash  krane completion bash > /etc/bash_completion.d/krane
  zsh   krane completion zsh > \"${fpath[1]}/_krane\"
  fish  krane completion fish > ~/.config/fish/completions/krane.fish";

/// Prints a script for a shell.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(super) struct Completion {
    /// The shell.
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completion {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        let mut command = super::Cli::command();
        clap_complete::generate(shell, &mut command, "krane", &mut script);
        terminal.data(&String::from_utf8_lossy(&script))
    }
}
