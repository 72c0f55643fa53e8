//! Everything an operator can set: read from all layers, checked as a whole, and typed.
//!
//! Layers from the lowest to the highest (D35): the built-in `config/default.toml`, the files given
//! with `--config`, the flat `UNKEY_*` variables of the original agent, `KRANE__SECTION__KEY`,
//! flags. This is the only module that reads the environment.

mod assemble;
mod effective;
mod files;
mod flat;
mod keys;
mod kind;
mod layer;
mod nearest;
mod problem;
mod raw;
mod reader;
pub mod reference;
mod secret;
mod substitute;
mod table;
mod tree;
mod typed;
mod types;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

pub use effective::{Effective, EffectiveValue};
pub use files::{SecretFiles, UnusableFile};
pub use flat::Misspelt;
pub use keys::{KEYS, Key};
pub use kind::Kind;
pub use layer::{DEFAULT_TOML, FlagValue};
pub use nearest::nearest;
pub use problem::{Problem, ProblemKind};
pub use raw::Origin;
pub use secret::{SecretError, SecretSource};
pub use typed::*;
pub use types::{
    ByteSize, LogFormat, LogLevel, ProbePaths, Region, ReplaceOutdatedPods, ReportAddress,
    UpgradesMode, Url, WritesMode, parse_duration,
};

use layer::Layers;
use reader::{Reader, Setting};

/// What settings are made from.
#[derive(Debug, Default, Clone)]
pub struct LoadInput {
    /// The files given with `--config`, in that order; later ones win.
    pub files: Vec<PathBuf>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// What flags set, in the order of the command line; later ones win.
    pub flags: Vec<FlagValue>,
    /// The file given with `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The context given with `--context`.
    pub context: Option<String>,
}

impl LoadInput {
    /// An input with the environment of this process. What is not UTF-8 in it is replaced by
    /// U+FFFD, which the checks refuse where it matters.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn from_process() -> Self {
        let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
        let env = std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        Self {
            env,
            ..Self::default()
        }
    }
}

/// `vault.*`
#[derive(Debug, Clone)]
pub enum Vault {
    /// A vault service.
    Remote {
        /// Its base address.
        url: Url,
        /// Its bearer token; `None` sends none.
        token: Option<SecretSource>,
    },
    /// Decryption in this process, with keys in a bucket.
    Embedded {
        /// The master keys, [`SecretSource::current_list`]; every one decrypts.
        master_keys: SecretSource,
        /// The bucket with the data keys.
        s3: S3,
    },
}

/// `k8s.qps` and `k8s.burst`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second.
    pub per_second: NonZeroU32,
    /// Requests that may start at once; the rate when `k8s.burst` is 0.
    pub burst: NonZeroU32,
}

/// What the choice of the credentials depends on, as the environment and flags tell it (D39).
#[derive(Clone, Debug, Default)]
pub struct AccessInputs {
    /// `KUBERNETES_SERVICE_HOST`
    pub service_host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`
    pub service_port: Option<String>,
    /// `KUBECONFIG`, a list of files in the form of `PATH`
    pub kubeconfig_list: Option<std::ffi::OsString>,
    /// The user's home folder
    pub home: Option<PathBuf>,
    /// `--kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--context`
    pub context: Option<String>,
}

/// Settings together with what they were made from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The checked settings.
    pub settings: Settings,
    /// Every key with its value and origin, secrets masked.
    pub effective: Effective,
    /// Variables that look like ours and are not.
    pub misspelt: Vec<Misspelt>,
}

impl Settings {
    /// Reads and checks all layers; every problem is in the error, not only the first.
    pub fn load(input: &LoadInput) -> Result<Self, InvalidSettings> {
        Loaded::load(input).map(|loaded| loaded.settings)
    }
}

impl Loaded {
    /// Like [`Settings::load`], and keeps the origin of every value.
    pub fn load(input: &LoadInput) -> Result<Self, InvalidSettings> {
        let mut layers = Layers::new(&input.env);
        layers.defaults();
        layers.files(&input.files);
        layers.flat_variables();
        layers.variables();
        layers.flags(&input.flags);
        let mut reader = Reader::new(layers.tree, layers.problems, input);
        assemble::prepare(&mut reader);
        let settings = Settings::read(&mut reader, "");
        let (tree, problems) = reader.finish();
        let effective = Effective::of(&tree);
        let problems = problem::without_consequences(problems);
        let misspelt = flat::misspelt(&input.env);
        match settings {
            Ok(settings) if problems.is_empty() => Ok(Self {
                settings,
                effective,
                misspelt,
            }),
            Ok(_) | Err(_) => Err(InvalidSettings {
                effective: effective.without(&problems),
                problems,
                misspelt,
            }),
        }
    }
}

/// Everything that is wrong with a configuration, found in one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidSettings {
    /// At least one problem, in the order of the layers and then of the keys.
    pub problems: Vec<Problem>,
    /// Every key with its value and origin as far as they could be read, secrets masked.
    pub effective: Effective,
    /// Variables that look like ours and are not.
    pub misspelt: Vec<Misspelt>,
}

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the configuration has {} problem(s)",
            self.problems.len()
        )?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for InvalidSettings {}

#[cfg(test)]
mod tests;
