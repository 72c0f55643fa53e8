//! How results and problems look.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
pub(super) use krane_domain::words::printable;
use krane_settings::{InvalidSettings, Misspelt};

use super::exit;

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "1;31";
const GREEN: &str = "1;32";
const YELLOW: &str = "1;33";

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Text,
    Json,
}

/// The two streams of the process.
pub struct Terminal {
    /// Whether chatter may be coloured.
    color: bool,
}

impl Terminal {
    /// Colours only for people: on a terminal, unless `NO_COLOR` or `TERM=dumb` says no.
    pub fn of_process(env: &BTreeMap<String, String>) -> Self {
        Self {
            color: io::stderr().is_terminal() && Self::may_color(env),
        }
    }

    /// Whether the environment leaves colours to whoever writes to a terminal.
    pub fn may_color(env: &BTreeMap<String, String>) -> bool {
        let forbidden = env.get("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env.get("TERM").is_some_and(|term| term == "dumb");
        !forbidden
    }

    /// Writes the result of a verb. A closed pipe is no failure: the reader has had enough.
    pub(super) fn data(&self, text: &str) -> ExitCode {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        match written.and_then(|()| stdout.flush()) {
            Ok(()) => ExitCode::from(exit::OK),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(exit::OK),
            Err(error) => {
                let sentence = format!("the result could not be written: {error}");
                self.failure(
                    "krane::cli::output",
                    &sentence,
                    &[],
                    "check where stdout goes",
                );
                ExitCode::from(exit::UNAVAILABLE)
            }
        }
    }

    /// Tells a person something. There is nowhere to report that stderr is closed.
    fn chatter(text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// One line that says all is well.
    pub(super) fn success(&self, text: &str) {
        let mark = self.paint(GREEN, "✔");
        Self::chatter(&format!("{mark} {text}\n"));
    }

    /// One line that a person should know of.
    pub(super) fn note(&self, text: &str) {
        let mark = self.paint(YELLOW, "!");
        Self::chatter(&format!("{mark} {text}\n"));
    }

    /// What to do about the line before.
    pub(super) fn help(&self, text: &str) {
        Self::chatter(&self.render_help(text));
    }

    /// One line for each variable that was most likely meant to be one of ours.
    pub(super) fn misspelt(&self, misspelt: &[Misspelt]) {
        let mark = self.paint(YELLOW, "!");
        for Misspelt { name, meant } in misspelt {
            Self::chatter(&format!(
                "{mark} {name} has no effect: did you mean {meant}?\n"
            ));
        }
    }

    /// One failure with its facts and what to do about it.
    pub(super) fn failure(&self, code: &str, sentence: &str, facts: &[(&str, &str)], help: &str) {
        Self::chatter(&self.render_failure(code, sentence, facts, help));
    }

    /// The closing line about a configuration.
    pub(super) fn count_of_problems(&self, problems: usize) {
        Self::chatter(&format!("\n{}", self.render_count(problems)));
    }

    /// Every problem of a configuration, and their number.
    pub fn invalid_settings(&self, invalid: &InvalidSettings) {
        Self::chatter(&self.render_invalid(invalid));
        self.misspelt(&invalid.misspelt);
    }

    fn render_invalid(&self, invalid: &InvalidSettings) -> String {
        let mut text = String::new();
        for problem in &invalid.problems {
            let origin = problem.origin.as_ref().map(ToString::to_string);
            let facts = [
                ("value", problem.value.as_deref()),
                ("from", origin.as_deref()),
            ];
            let facts: Vec<_> = facts
                .into_iter()
                .filter_map(|(name, fact)| Some((name, fact?)))
                .collect();
            let sentence = format!("{} {}", problem.key, problem.kind);
            text += &self.render_failure(problem.kind.code(), &sentence, &facts, &problem.help);
            text.push('\n');
        }
        text + &self.render_count(invalid.problems.len())
    }

    fn render_count(&self, problems: usize) -> String {
        let count = match problems {
            1 => "1 problem".to_owned(),
            many => format!("{many} problems"),
        };
        let line = format!("{count} in the configuration, nothing was started");
        format!("{} {}\n", self.paint(RED, "✗"), self.paint(BOLD, &line))
    }

    fn render_failure(
        &self,
        code: &str,
        sentence: &str,
        facts: &[(&str, &str)],
        help: &str,
    ) -> String {
        let (mark, sentence) = (self.paint(RED, "✗"), self.paint(BOLD, sentence));
        let mut text = format!("{mark} {sentence}  {}\n", self.paint(DIM, code));
        for (name, fact) in facts {
            let _ = writeln!(
                text,
                "  {} {fact}",
                self.paint(DIM, &format!("├ {name:<6}"))
            );
        }
        text + &self.render_help(help)
    }

    fn render_help(&self, help: &str) -> String {
        format!("  {} {help}\n", self.paint(DIM, "╰ help  "))
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    #[cfg(test)]
    pub(super) fn render_for_test(color: bool, invalid: &InvalidSettings) -> String {
        Self { color }.render_invalid(invalid)
    }
}
