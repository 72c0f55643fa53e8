//! The list of keys that the table declares, and what a path means.

use std::time::Duration;

use super::kind::Kind;
use super::table::{dotted, every_key};
use super::types::{
    ByteSize, Choice, LogFormat, LogLevel, ProbePaths, ReplaceOutdatedPods, ReportAddress,
    UpgradesMode, WritesMode,
};

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The TOML path: `control.url`.
    pub path: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// A valid value, for messages.
    pub example: &'static str,
    /// The flat environment variable of the original agent, if it had one.
    pub flat: Option<&'static str>,
    /// The command-line flag, if there is one besides `--set`.
    pub flag: Option<&'static str>,
    /// The default as text, without quotes.
    pub default: Option<&'static str>,
    /// Whether some layer has to set it.
    pub is_required: bool,
    /// The value `config/default.toml` shows when there is no default; of a secret, its file.
    pub sample: &'static str,
    /// What `config/default.toml` says behind the value.
    pub note: Option<&'static str>,
    /// The lines above it in `config/default.toml`; none if the lines above another key count.
    pub doc: &'static [&'static str],
}

/// A section of the configuration.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) path: &'static str,
    /// The lines above its header in `config/default.toml`.
    pub(super) doc: &'static [&'static str],
}

/// Begins the declaration of a key.
const fn key(kind: Kind) -> Key {
    Key {
        path: "",
        kind,
        example: "",
        flat: None,
        flag: None,
        default: None,
        is_required: false,
        sample: "",
        note: None,
        doc: &[],
    }
}

const fn choice<T: Choice>() -> Key {
    key(Kind::Choice(T::WORDS))
}

const fn number(min: i64, max: i64) -> Key {
    key(Kind::Integer { min, max })
}

const fn mebibytes(min: u64, max: u64) -> Key {
    key(Kind::Bytes {
        min: ByteSize::from_mebibytes(min),
        max: ByteSize::from_mebibytes(max),
    })
}

const fn duration(min: Duration, max: Duration) -> Key {
    let zero = false;
    key(Kind::Duration { min, max, zero })
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn s(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn h(count: u64) -> Duration {
    Duration::from_hours(count)
}

/// Every later call wins: `default` is also the example, and the example also the sample.
impl Key {
    const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self.example(text)
    }

    const fn example(mut self, text: &'static str) -> Self {
        self.example = text;
        self.sample(text)
    }

    const fn sample(mut self, text: &'static str) -> Self {
        self.sample = text;
        self
    }

    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Accepts `0` although it is below the least duration.
    const fn or_zero(mut self) -> Self {
        if let Kind::Duration { min, max, .. } = self.kind {
            let zero = true;
            self.kind = Kind::Duration { min, max, zero };
        }
        self
    }

    const fn note(mut self, text: &'static str) -> Self {
        self.note = Some(text);
        self
    }

    const fn flat(mut self, name: &'static str) -> Self {
        self.flat = Some(name);
        self
    }

    const fn flag(mut self, name: &'static str) -> Self {
        self.flag = Some(name);
        self
    }

    const fn at(mut self, path: &'static str, doc: &'static [&'static str]) -> Self {
        self.path = path;
        self.doc = doc;
        self
    }

    /// The environment variable that sets this key: `KRANE__CONTROL__URL`.
    #[must_use]
    pub(super) fn variable(&self) -> String {
        variable(self.path)
    }

    /// The path of the section that holds it, and its name in there.
    pub(super) fn section_and_name(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }

    /// What it does: the lines above it, or above the keys before it, or above its section.
    pub(super) fn description(&self) -> String {
        let (section, _) = self.section_and_name();
        let above = KEYS.iter().rev().skip_while(|key| key.path != self.path);
        let mut beside = above.take_while(|key| key.section_and_name().0 == section);
        let of_section = SECTIONS.iter().find(|found| found.path == section);
        let of_section = of_section.map_or(&[][..], |found| found.doc);
        let lines = beside.find(|key| !key.doc.is_empty());
        let lines = lines.map_or(of_section, |key| key.doc).iter();
        lines.map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }
}

macro_rules! list {
    ($(
        $(#[doc = $section_doc:literal])*
        section $path:tt $form:ident $name:ident $(, checked by $check:path)? {
            $(
                $(#[doc = $doc:literal])*
                $key:ident: $type:ty = $spec:expr $(, by $by:path)? $(, with {
                    $($(#[doc = $with_doc:literal])* $with:ident = $with_spec:expr;)*
                })?;
            )*
        } $(plus $plus:tt)?
    )*) => {
        /// All keys.
        pub const KEYS: &[Key] = &[$($(
            $spec.at(dotted!($path $key), &[$($doc),*]),
            $($($with_spec.at(dotted!($path $with), &[$($with_doc),*]),)*)?
        )*)*];

        /// All sections; the outermost has an empty path.
        pub(super) const SECTIONS: &[Section] = &[$(
            Section { path: dotted!($path), doc: &[$($section_doc),*] },
        )*];
    };
}

every_key!(list);

/// The environment variable for a TOML path, known or not.
#[must_use]
pub(super) fn variable(path: &str) -> String {
    format!("KRANE__{}", path.to_uppercase().replace('.', "__"))
}

/// Added to the path of a secret, names the file that holds it.
pub(super) const FILE_SUFFIX: &str = "_file";

/// Says in the flat form whether the tracing section is present.
pub(super) const OTEL_ENABLED: &str = "UNKEY_OTEL_ENABLED";

/// The section that [`OTEL_ENABLED`] switches.
pub(super) const TRACING: &str = "observability.tracing";

/// What a TOML path means.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// A key's own path.
    Value,
    /// The path of a secret's file.
    SecretFile,
    /// A table that holds keys.
    Section,
    /// Nothing krane knows.
    Unknown,
}

pub(super) fn meaning(path: &str) -> Meaning {
    if find(path).is_some() {
        return Meaning::Value;
    }
    let secret = path
        .strip_suffix(FILE_SUFFIX)
        .and_then(find)
        .filter(|key| key.kind.is_secret());
    if secret.is_some() {
        return Meaning::SecretFile;
    }
    let inside = |key: &Key| {
        key.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    if KEYS.iter().any(inside) {
        Meaning::Section
    } else {
        Meaning::Unknown
    }
}

pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Every path a configuration may hold, `…_file` forms and sections included.
pub(super) fn known_paths() -> Vec<String> {
    let mut paths = Vec::new();
    for key in KEYS {
        paths.push(key.path.to_owned());
        if key.kind.is_secret() {
            paths.push(format!("{}{FILE_SUFFIX}", key.path));
        }
        for (dot, _) in key.path.match_indices('.') {
            paths.push(key.path[..dot].to_owned());
        }
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
