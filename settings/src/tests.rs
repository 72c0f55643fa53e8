//! Settings are read from plain values here; nothing touches the environment of the process.

mod errors;
mod generated;
mod layers;
mod secrets;
mod substitution;
mod table;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{FlagValue, InvalidSettings, LoadInput, Loaded, Problem, Settings};

/// A configuration under construction; its files live as long as it does.
struct Given {
    input: LoadInput,
    dir: TempDir,
}

impl Given {
    /// Nothing at all: required keys are missing.
    fn nothing() -> Self {
        Self {
            input: LoadInput::default(),
            dir: TempDir::new().unwrap(),
        }
    }

    /// Only what has no default.
    fn required() -> Self {
        Self::nothing().file(
            "region = 'us-east-1'\nplatform = 'aws'\n\
             [control]\nurl = 'http://control:7091'\ntoken = 'bearer'\n",
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn file(mut self, text: &str) -> Self {
        let path = self.write(&format!("{}.toml", self.input.files.len()), text);
        self.input.files.push(path);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.input.env.insert(name.to_owned(), value.to_owned());
        self
    }

    fn set(mut self, path: &str, value: &str) -> Self {
        let (flag, path, value) = ("--set".to_owned(), path.to_owned(), value.to_owned());
        self.input.flags.push(FlagValue { flag, path, value });
        self
    }

    fn load(&self) -> Result<Loaded, InvalidSettings> {
        Loaded::load(&self.input)
    }

    #[track_caller]
    fn settings(&self) -> Settings {
        self.load()
            .unwrap_or_else(|invalid| panic!("{invalid}"))
            .settings
    }

    #[track_caller]
    fn problems(&self) -> Vec<Problem> {
        self.load().expect_err("must be refused").problems
    }

    /// Asserts that the only problem is this one, as an operator reads it.
    #[track_caller]
    fn refused(&self, expected: &str) {
        let problems: Vec<_> = self.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [expected.replace("{dir}", &self.dir.path().display().to_string())]
        );
    }

    /// The value in effect and its origin.
    #[track_caller]
    fn effective(&self, path: &str) -> (String, String) {
        let loaded = self.load().unwrap_or_else(|invalid| panic!("{invalid}"));
        let values: BTreeMap<_, _> = loaded
            .effective
            .values
            .into_iter()
            .map(|value| (value.path.clone(), value))
            .collect();
        let value = &values[path];
        let origin = value
            .origin
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        (value.shown.clone().unwrap_or_default(), origin)
    }
}
