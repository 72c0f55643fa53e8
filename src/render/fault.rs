//! What is wrong with an input, and where.

use std::fmt;

use krane_domain::invalid::Invalid;

/// So many are told. Whoever gave the wrong file needs no more.
const MOST_TOLD: usize = 100;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which state, and which of its fields: `deployments[2].apply.image`.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column } = self;
        write!(f, "{path} (line {line}, column {column})")
    }
}

/// Something that is wrong with the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What.
    pub what: FaultKind,
}

/// What may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is nothing that the messages have.
    Unreadable(String),
    /// It can be read, and krane would set it aside.
    Invalid(Invalid),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            FaultKind::Unreadable(words) => write!(f, "{}: {words}", self.place),
            FaultKind::Invalid(invalid) => write!(f, "{}: {invalid}", self.place),
        }
    }
}

/// The faults of an input; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The first ones, in the order of the file.
    pub told: Vec<Fault>,
    /// How many there are.
    pub count: usize,
    /// Whether one of them, told or not, is unreadable.
    pub has_unreadable: bool,
}

/// A fault whose line and column are not counted yet.
pub(super) struct Found {
    pub(super) path: String,
    /// In bytes from the start of the text.
    pub(super) offset: usize,
    pub(super) what: FaultKind,
}

impl Faults {
    /// Counts lines and columns once for all.
    pub(super) fn of(text: &str, mut found: Vec<Found>) -> Self {
        let count = found.len();
        let has_unreadable = found
            .iter()
            .any(|fault| matches!(fault.what, FaultKind::Unreadable(_)));
        found.sort_by_key(|fault| fault.offset);
        found.truncate(MOST_TOLD);
        let (mut at, mut line, mut column) = (0, 1, 1);
        let told = found.into_iter().map(|Found { path, offset, what }| {
            let between = text.get(at..offset).unwrap_or_default();
            let last_line = match between.rsplit_once('\n') {
                Some((lines, last)) => {
                    line += lines.matches('\n').count() + 1;
                    column = 1;
                    last
                }
                None => between,
            };
            column += last_line.chars().count();
            at = offset;
            let place = Place { path, line, column };
            Fault { place, what }
        });
        Self {
            told: told.collect(),
            count,
            has_unreadable,
        }
    }
}
