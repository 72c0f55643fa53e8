//! What a key accepts: the description in messages and the parser are one thing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::raw::Raw;
use super::types::{ByteSize, Choice, Refusal, Url, parse_duration, show_duration};

/// The values one key accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// One line of text.
    Text,
    /// A whole number, both bounds included.
    Integer {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A number from 0 to 1.
    Fraction,
    /// `true` or `false`.
    Boolean,
    /// A length of time, both bounds included.
    Duration {
        /// The least value.
        min: Duration,
        /// The greatest value.
        max: Duration,
        /// Whether `0` is accepted although it is below `min`.
        zero: bool,
    },
    /// A number of bytes, both bounds included.
    Bytes {
        /// The least value.
        min: ByteSize,
        /// The greatest value.
        max: ByteSize,
    },
    /// An `http://` or `https://` address.
    Url,
    /// An IP address with a port.
    Address,
    /// A path of a file.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A secret that travels in an HTTP header.
    Token,
    /// A secret without further form.
    Secret,
    /// A list of secrets.
    SecretList,
}

impl Kind {
    /// Whether values must never be shown, and may come from `<key>_file`.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        matches!(self, Self::Token | Self::Secret | Self::SecretList)
    }

    /// The accepted values in words, to follow "must be".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text => "a line of text".to_owned(),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Fraction => "a number from 0 to 1".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Duration { min, max, zero } => {
                let (min, max) = (show_duration(*min), show_duration(*max));
                let off = if *zero { ", or 0" } else { "" };
                format!("a duration from {min} to {max}{off}")
            }
            Self::Bytes { min, max } => format!("a size from {min} to {max}"),
            Self::Url => "an http:// or https:// address".to_owned(),
            Self::Address => "an IP address with a port".to_owned(),
            Self::Path => "the path of a file".to_owned(),
            Self::Choice([others @ .., last]) => format!("{} or {last}", others.join(", ")),
            Self::Choice([]) => "nothing".to_owned(),
            Self::Token | Self::Secret => "a string".to_owned(),
            Self::SecretList => "a list of strings".to_owned(),
        }
    }
}

/// A typed value that a [`Kind`] yields.
pub(super) trait FromRaw: Sized {
    fn from_raw(raw: &Raw, kind: &Kind) -> Result<Self, Refusal>;
}

fn wrong_type(raw: &Raw) -> Refusal {
    Refusal::WrongType(raw.type_name())
}

fn text(raw: &Raw) -> Result<&str, Refusal> {
    raw.as_text().ok_or_else(|| wrong_type(raw))
}

impl FromRaw for String {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        let text = text(raw)?;
        if text.contains(char::is_control) {
            return Err(Refusal::Malformed("must not hold line breaks".to_owned()));
        }
        if text.trim() != text {
            return Err(Refusal::Malformed(
                "must not start or end with a space".to_owned(),
            ));
        }
        Ok(text.to_owned())
    }
}

impl FromRaw for PathBuf {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        text(raw).map(Self::from)
    }
}

impl FromRaw for Url {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        Self::parse(text(raw)?)
    }
}

impl FromRaw for SocketAddr {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        text(raw)?.parse().map_err(|_| {
            Refusal::Malformed("must be an IP address with a port, host names are not".to_owned())
        })
    }
}

// Variables and `${…}` only carry text, so every type is also read from text.

impl FromRaw for bool {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        if let Raw::Boolean(value) = raw {
            return Ok(*value);
        }
        match text(raw)? {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(Refusal::OutOfRange),
        }
    }
}

impl FromRaw for i64 {
    fn from_raw(raw: &Raw, kind: &Kind) -> Result<Self, Refusal> {
        let number: i128 = if let Raw::Integer(number) = raw {
            *number
        } else {
            text(raw)?.parse().map_err(|_| wrong_type(raw))?
        };
        let Kind::Integer { min, max } = kind else {
            return Err(Refusal::OutOfRange);
        };
        let number = Self::try_from(number).ok();
        let inside = number.filter(|number| (min..=max).contains(&number));
        inside.ok_or(Refusal::OutOfRange)
    }
}

/// Narrower integers: the key's range decides, the type only has to be wide enough for it.
macro_rules! narrow {
    ($($integer:ty),+) => {$(
        impl FromRaw for $integer {
            fn from_raw(raw: &Raw, kind: &Kind) -> Result<Self, Refusal> {
                let number = i64::from_raw(raw, kind)?;
                Self::try_from(number).map_err(|_| Refusal::OutOfRange)
            }
        }
    )+};
}
narrow!(u8, u16, u32, i32, usize);

impl FromRaw for f64 {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        let number = if let Raw::Float(number) = raw {
            *number
        } else if let Raw::Integer(number) = raw {
            match number {
                0 => 0.0,
                1 => 1.0,
                _ => return Err(Refusal::OutOfRange),
            }
        } else {
            text(raw)?.parse().map_err(|_| wrong_type(raw))?
        };
        // NaN is in no range.
        if (0.0..=1.0).contains(&number) {
            Ok(number)
        } else {
            Err(Refusal::OutOfRange)
        }
    }
}

impl FromRaw for Duration {
    fn from_raw(raw: &Raw, kind: &Kind) -> Result<Self, Refusal> {
        let duration = if matches!(raw, Raw::Integer(0)) {
            Self::ZERO
        } else if matches!(raw, Raw::Integer(_) | Raw::Float(_)) {
            return Err(unit_missing());
        } else {
            let text = text(raw)?;
            match parse_duration(text) {
                Some(duration) => duration,
                None if text.parse::<f64>().is_ok() => return Err(unit_missing()),
                None => {
                    let reason = "must be a number with a unit (ms, s, m, h)";
                    return Err(Refusal::Malformed(reason.to_owned()));
                }
            }
        };
        let Kind::Duration { min, max, zero } = kind else {
            return Err(Refusal::OutOfRange);
        };
        if (min..=max).contains(&&duration) || (*zero && duration.is_zero()) {
            Ok(duration)
        } else {
            Err(Refusal::OutOfRange)
        }
    }
}

fn unit_missing() -> Refusal {
    Refusal::Malformed("needs a unit (ms, s, m, h)".to_owned())
}

impl FromRaw for ByteSize {
    fn from_raw(raw: &Raw, kind: &Kind) -> Result<Self, Refusal> {
        let size = if let Raw::Integer(bytes) = raw {
            let bytes = u64::try_from(*bytes);
            Self::from_bytes(bytes.map_err(|_| Refusal::OutOfRange)?)
        } else {
            Self::parse(text(raw)?).ok_or_else(|| {
                Refusal::Malformed("must be a number with a unit (KiB, MiB, GiB)".to_owned())
            })?
        };
        let Kind::Bytes { min, max } = kind else {
            return Err(Refusal::OutOfRange);
        };
        if (min..=max).contains(&&size) {
            Ok(size)
        } else {
            Err(Refusal::OutOfRange)
        }
    }
}

impl<T: Choice> FromRaw for T {
    fn from_raw(raw: &Raw, _: &Kind) -> Result<Self, Refusal> {
        Self::from_word(text(raw)?).ok_or(Refusal::OutOfRange)
    }
}
