//! What can be wrong with a configuration, and what the operator does about it.

use std::fmt;

use super::raw::Origin;

/// What a problem says instead of a path that may be the secret itself.
pub(super) const HIDDEN_FILE: &str = "a file whose name is not shown, for without a folder that is there, such as ./, it may be the secret itself";

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The key, variable or file it is about.
    pub key: String,
    /// The value as it was given; never set for a secret or an unknown key.
    pub value: Option<String>,
    /// Where the value came from; `None` when nothing gave one.
    pub origin: Option<Origin>,
    /// What is wrong.
    pub kind: ProblemKind,
    /// What to do.
    pub help: String,
}

/// The ways in which a configuration can be wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProblemKind {
    /// A file given with `--config` cannot be read.
    #[error("cannot be read: {0}")]
    FileUnreadable(String),
    /// A file is not TOML. The offending text is not repeated: it may be a secret.
    #[error("is not valid TOML{}: {reason}", At(*.line, *.column))]
    Syntax {
        /// The line, from 1; 0 when unknown.
        line: usize,
        /// The column, from 1; 0 when unknown.
        column: usize,
        /// What the parser expected.
        reason: String,
    },
    /// No key has this name.
    #[error("is not a known key")]
    UnknownKey,
    /// A value where a section was expected.
    #[error("is a section and cannot be a value")]
    SectionExpected,
    /// A required key without a value.
    #[error("is required")]
    Missing,
    /// A value of another type.
    #[error("must be {expected}, not {found}")]
    WrongType {
        /// The accepted values in words.
        expected: String,
        /// The type found.
        found: &'static str,
    },
    /// A value outside the accepted range or list.
    #[error("must be {0}")]
    OutOfRange(String),
    /// A value of the right type and the wrong form.
    #[error("{0}")]
    Malformed(String),
    /// `${NAME}` names a variable that is not set.
    #[error("refers to the variable {0}, which is not set")]
    UndefinedVariable(String),
    /// `${` that is no reference.
    #[error("holds `${{` without a variable name and `}}`")]
    BadReference,
    /// A secret and its `_file` form in one layer.
    #[error("is set both directly and by its file")]
    BothForms,
    /// A secret in a flag.
    #[error("is a secret and cannot be given by a flag")]
    SecretInFlag,
    /// A file that a setting names cannot be used.
    #[error("names {path}, which {reason}")]
    FileUnusable {
        /// The file.
        path: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// Settings that only work together were set in part.
    #[error("is needed together with {0}")]
    HalfSet(String),
    /// Two servers on one port.
    #[error("is the same port as {0}")]
    PortTaken(&'static str),
    /// Two settings contradict each other.
    #[error("{0}")]
    Conflict(String),
}

impl ProblemKind {
    /// A stable name for documentation and searches.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FileUnreadable(_) => "krane::config::file_unreadable",
            Self::Syntax { .. } => "krane::config::syntax",
            Self::UnknownKey => "krane::config::unknown_key",
            Self::SectionExpected => "krane::config::section_expected",
            Self::Missing => "krane::config::missing",
            Self::WrongType { .. } => "krane::config::wrong_type",
            Self::OutOfRange(_) => "krane::config::out_of_range",
            Self::Malformed(_) => "krane::config::malformed",
            Self::UndefinedVariable(_) => "krane::config::undefined_variable",
            Self::BadReference => "krane::config::bad_reference",
            Self::BothForms => "krane::config::both_forms",
            Self::SecretInFlag => "krane::config::secret_in_flag",
            Self::FileUnusable { .. } => "krane::config::file_unusable",
            Self::HalfSet(_) => "krane::config::half_set",
            Self::PortTaken(_) => "krane::config::port_taken",
            Self::Conflict(_) => "krane::config::conflict",
        }
    }
}

/// The position part of a syntax message.
struct At(usize, usize);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, " at line {line}, column {}", self.1),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.kind)?;
        if let Some(value) = &self.value {
            write!(f, "; value {value}")?;
        }
        if let Some(origin) = &self.origin {
            write!(f, "; from {origin}")?;
        }
        write!(f, "; {}", self.help)
    }
}

impl Problem {
    /// Whether the value may be a secret in the wrong place. A file is named where it may be.
    pub(super) fn hides_value(&self) -> bool {
        !matches!(&self.kind, ProblemKind::FileUnusable { path, .. } if path != HIDDEN_FILE)
    }
}

/// Leaves out what may only be wrong because a file could not be read.
pub(super) fn without_consequences(mut problems: Vec<Problem>) -> Vec<Problem> {
    let is_partial = problems.iter().any(|problem| {
        matches!(
            problem.kind,
            ProblemKind::FileUnreadable(_) | ProblemKind::Syntax { .. }
        )
    });
    if is_partial {
        problems.retain(|problem| {
            !matches!(
                problem.kind,
                ProblemKind::Missing
                    | ProblemKind::HalfSet(_)
                    | ProblemKind::PortTaken(_)
                    | ProblemKind::Conflict(_)
            )
        });
    }
    problems
}
