//! A look at a message that does not decode: which object it is about, and its version.

#[cfg(test)]
mod tests;

/// The fields of a state message, equal for all kinds.
const APPLY: u32 = 1;
const DELETE: u32 = 2;
const VERSION: u32 = 3;
/// The fields of an apply or delete message that name the object; which says what depends on its
/// kind.
const FIRST: u32 = 1;
const SECOND: u32 = 2;

/// What can be said about a message that does not decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Glimpse<'a> {
    /// The first of the texts that name the object, when it is there whole.
    pub first: Option<&'a str>,
    /// The second one, likewise.
    pub second: Option<&'a str>,
    /// The version, 0 when it cannot be read.
    pub version: u64,
}

/// Reads as far as the bytes make sense.
pub(super) fn glimpse(message: &[u8]) -> Glimpse<'_> {
    let mut glimpse = Glimpse::default();
    for (number, value) in Fields(message) {
        match (number, value) {
            // The last case wins, as in a real decoder.
            (APPLY | DELETE, Value::Bytes { bytes, .. }) => {
                (glimpse.first, glimpse.second) = names(bytes);
            }
            (VERSION, Value::Number(version)) => glimpse.version = version,
            _ => {}
        }
    }
    glimpse
}

fn names(message: &[u8]) -> (Option<&str>, Option<&str>) {
    let (mut first, mut second) = (None, None);
    for (number, value) in Fields(message) {
        // Half a name is the name of another object.
        let Value::Bytes { bytes, whole: true } = value else {
            continue;
        };
        match number {
            FIRST => first = std::str::from_utf8(bytes).ok(),
            SECOND => second = std::str::from_utf8(bytes).ok(),
            _ => {}
        }
    }
    (first, second)
}

enum Value<'a> {
    Number(u64),
    Bytes { bytes: &'a [u8], whole: bool },
    Other,
}

/// The fields of a message up to the first byte that cannot be one.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => {
                self.skip(8)?;
                Value::Other
            }
            2 => {
                let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                let whole = length <= self.0.len();
                let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
                self.0 = rest;
                Value::Bytes { bytes, whole }
            }
            // Groups: their members follow as fields of their own.
            3 | 4 => Value::Other,
            5 => {
                self.skip(4)?;
                Value::Other
            }
            _ => return None,
        };
        Some((number, value))
    }
}

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for (position, byte) in self.0.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                self.0 = &self.0[position + 1..];
                return Some(number);
            }
        }
        None
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }
}
