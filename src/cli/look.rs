//! Who is looked at: the running krane, or a support bundle that was made of one.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::admin::{AdminFlags, AskError};
use super::bundle::kept::Bundle;
use super::output::{Terminal, printable};

/// Where a verb that looks gets its answers from.
#[derive(Debug, Args)]
pub(super) struct LookFlags {
    #[command(flatten)]
    admin: AdminFlags,

    /// Look into this support bundle instead of at a running krane; - is stdin.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["admin", "token_file"])]
    from: Option<PathBuf>,
}

/// Somebody who can be asked what the API has at a path.
pub(super) trait Answers {
    /// What is there, as JSON.
    async fn answer(&self, path: &str) -> Result<Value, AskError>;

    /// What to say of an answer that is none.
    fn nonsense(&self, error: serde_json::Error) -> AskError {
        AskError::Answer(error)
    }
}

impl Answers for AdminFlags {
    async fn answer(&self, path: &str) -> Result<Value, AskError> {
        self.get(path).await
    }
}

/// Who answers a verb that looks.
pub(super) enum Krane<'a> {
    Running(&'a AdminFlags),
    Kept(Bundle),
}

impl LookFlags {
    /// Who answers; says that what follows is not how it is now, if it is not.
    pub(super) fn open(&self, terminal: &Terminal) -> Result<Krane<'_>, AskError> {
        let Some(file) = &self.from else {
            return Ok(Krane::Running(&self.admin));
        };
        let bundle = Bundle::read(file)?;
        let taken_at = bundle.taken_at().unwrap_or("a time that it does not tell");
        let words = format!("this is how it was at {taken_at}, from {}", file.display());
        terminal.note(&printable(&words));
        Ok(Krane::Kept(bundle))
    }
}

impl Answers for Krane<'_> {
    async fn answer(&self, path: &str) -> Result<Value, AskError> {
        match self {
            Self::Running(admin) => admin.answer(path).await,
            Self::Kept(bundle) => Ok(bundle.answer(path)?),
        }
    }

    fn nonsense(&self, error: serde_json::Error) -> AskError {
        match self {
            Self::Running(admin) => admin.nonsense(error),
            Self::Kept(bundle) => bundle.is_none(error.to_string()).into(),
        }
    }
}
