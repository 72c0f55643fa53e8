//! Flags that set configuration keys. They follow from the list of keys, which names them.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use krane_settings::{FlagValue, KEYS, Key, LoadInput};

const CONFIG: &str = "config";
const SET: &str = "set";
const HEADING: &str = "Settings (never secrets)";

/// `--config`, `--set` and a flag for each key that has one.
#[derive(Debug, Default)]
pub(super) struct SettingFlags {
    files: Vec<PathBuf>,
    values: Vec<FlagValue>,
}

impl SettingFlags {
    /// Whether nothing was given.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.values.is_empty()
    }

    pub(super) fn into_input(self, mut process: LoadInput) -> LoadInput {
        process.files = self.files;
        process.flags = self.values;
        process
    }
}

fn flagged() -> impl Iterator<Item = (&'static Key, &'static str)> {
    KEYS.iter()
        .filter_map(|key| Some((key, key.flag?.strip_prefix("--")?)))
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help("A TOML file; may be given several times, later ones win");
        let set = Arg::new(SET)
            .long("set")
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .help_heading(HEADING)
            .help("Set any key, such as `--set resync.interval=30s`");
        let command = flagged().fold(command.arg(config), |command, (key, flag)| {
            let help = format!("Set {}: {}", key.path, key.kind.describe());
            let arg = Arg::new(key.path)
                .long(flag)
                .value_name("VALUE")
                .action(ArgAction::Append);
            command.arg(arg.help_heading(HEADING).help(help))
        });
        command.arg(set)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.files = matches
            .get_many(CONFIG)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        // Sorted by place, so that the last one on the line wins whatever it is called.
        let mut placed = Vec::new();
        for (key, flag) in flagged() {
            let values = matches.get_many::<String>(key.path).into_iter().flatten();
            for (place, value) in matches
                .indices_of(key.path)
                .into_iter()
                .flatten()
                .zip(values)
            {
                placed.push((
                    place,
                    format!("--{flag}"),
                    key.path.to_owned(),
                    value.clone(),
                ));
            }
        }
        let values = matches.get_many::<String>(SET).into_iter().flatten();
        for (place, text) in matches.indices_of(SET).into_iter().flatten().zip(values) {
            let (path, value) = key_and_value(text)?;
            placed.push((place, "--set".to_owned(), path, value));
        }
        placed.sort();
        let value = |(_, flag, path, value)| FlagValue { flag, path, value };
        self.values = placed.into_iter().map(value).collect();
        Ok(())
    }
}

/// The text may be a secret whose `=` was forgotten, so the error does not repeat it.
fn key_and_value(text: &str) -> Result<(String, String), clap::Error> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        clap::Error::raw(
            ErrorKind::ValueValidation,
            "--set must be followed by KEY=VALUE, such as rpc_port=8071\n",
        )
    })?;
    Ok((key.trim().to_owned(), value.to_owned()))
}
