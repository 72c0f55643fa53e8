//! Amounts in the one spelling that an API server stores.

/// The canonical spelling; `None` for what is no quantity. Amounts of `resources` are rounded up
/// to thousandths, as `is_resource` says.
pub(super) fn canonical(text: &str, is_resource: bool) -> Option<String> {
    let text = text.trim();
    if text == "0" {
        return Some(text.to_owned());
    }
    let amount = Amount::parse(text)?;
    // A number that needs no rounding and is already short is kept as it was written.
    if amount.is_as_written && (!is_resource || amount.is_in_thousandths()) {
        return Some(text.to_owned());
    }
    amount.rounded(if is_resource { -3 } else { -9 }).spelled()
}

/// Whether one amount is more than another; both in canonical spelling.
pub(super) fn is_more(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (Amount::parse(one), Amount::parse(other)) else {
        return false;
    };
    let least = one.tens.min(other.tens);
    let scaled = |amount: Amount| {
        let power = 10_u128.checked_pow((amount.tens - least).unsigned_abs());
        power.and_then(|power| amount.value.checked_mul(power))
    };
    match (scaled(one), scaled(other)) {
        (Some(one), Some(other)) => one > other,
        (one, other) => one.is_none() && other.is_some(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// `value × 10^tens`
#[derive(Clone, Copy, Debug)]
struct Amount {
    is_negative: bool,
    value: u128,
    tens: i32,
    format: Format,
    is_as_written: bool,
}

impl Amount {
    fn parse(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let (bits, exponent, format) = suffix_of(suffix)?;
        let digits = format!("{whole}{fraction}");
        let mantissa: u128 = digits.parse().ok()?;
        let value = mantissa.checked_shl(bits)?;
        let tens = exponent - i32::try_from(fraction.len()).ok()?;
        let is_as_written = match format {
            Format::Binary => fraction.is_empty() && mantissa & 7 != 0,
            Format::Decimal | Format::Exponent => {
                tens % 3 == 0 && tens >= -9 && !digits.ends_with("000") && !digits.starts_with('0')
            }
        };
        Some(Self {
            is_negative,
            value,
            tens,
            format,
            is_as_written,
        })
    }

    fn is_in_thousandths(&self) -> bool {
        self.tens >= -3
    }

    /// Rounded up to this power of ten.
    fn rounded(mut self, least: i32) -> Self {
        while self.tens < least {
            self.value = self.value.div_ceil(10);
            self.tens += 1;
        }
        self
    }

    fn spelled(mut self) -> Option<String> {
        if self.value == 0 {
            return Some("0".to_owned());
        }
        while self.tens < 0 && self.value.is_multiple_of(10) {
            self.value /= 10;
            self.tens += 1;
        }
        let sign = if self.is_negative { "-" } else { "" };
        let is_whole = self.tens >= 0;
        let whole = self
            .value
            .checked_mul(10_u128.checked_pow(self.tens.unsigned_abs())?);
        if self.format == Format::Binary && is_whole && whole.is_some_and(|whole| whole >= 1024) {
            let mut whole = whole?;
            let mut step = 0;
            while whole.is_multiple_of(1024) && step < BINARY.len() - 1 {
                whole /= 1024;
                step += 1;
            }
            return Some(format!("{sign}{whole}{}", BINARY[step]));
        }
        while self.value.is_multiple_of(10) {
            self.value /= 10;
            self.tens += 1;
        }
        // Down to a power that has a suffix.
        while self.tens % 3 != 0 || self.tens > 18 {
            self.value = self.value.checked_mul(10)?;
            self.tens -= 1;
        }
        let suffix = if self.format == Format::Exponent {
            match self.tens {
                0 => String::new(),
                tens => format!("e{tens}"),
            }
        } else {
            DECIMAL
                .iter()
                .find(|(_, tens)| *tens == self.tens)?
                .0
                .to_owned()
        };
        Some(format!("{sign}{}{suffix}", self.value))
    }
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Powers of two and ten, and the family of suffixes.
fn suffix_of(suffix: &str) -> Option<(u32, i32, Format)> {
    if let Some((_, tens)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((0, *tens, Format::Decimal));
    }
    if let Some(step) = BINARY.iter().position(|known| *known == suffix) {
        return Some((u32::try_from(step).ok()? * 10, 0, Format::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((0, exponent, Format::Exponent))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    /// As a real API server spells them.
    #[test]
    fn amounts_are_spelled_as_measured() {
        for (written, stored) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("2", "2"),
            ("0.25", "250m"),
            ("0m", "0"),
            ("2048Mi", "2Gi"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000M", "1G"),
            ("1073741824", "1073741824"),
            ("1e9", "1e9"),
            ("1000000Ki", "1000000Ki"),
            ("+1Gi", "+1Gi"),
            ("0.1m", "1m"),
            ("250m", "250m"),
            ("64Mi", "64Mi"),
        ] {
            assert_eq!(
                canonical(written, true).as_deref(),
                Some(stored),
                "{written}"
            );
        }
        assert_eq!(canonical("many", true), None);
        assert_eq!(canonical("", true), None);
    }
}
