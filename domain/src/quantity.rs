//! Kubernetes quantities by value: `500m` is `0.5`, `1024Mi` is `1Gi`.

#[cfg(test)]
mod tests;

/// A quantity as `±odd × 2^twos × 5^fives`, with `odd` prime to ten: equal values are equal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    is_negative: bool,
    odd: u128,
    twos: i32,
    fives: i32,
}

impl Quantity {
    /// Reads a quantity; `None` for what is none, and for more than 38 significant digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        // The zero keeps ".0" a number; leading zeros are no significant digits to `parse`.
        let mantissa = format!("0{whole}{fraction}").parse::<u128>().ok()?;
        let (twos, tens) = scale(suffix)?;
        let fives = tens.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Self::reduced(
            is_negative,
            mantissa,
            twos.checked_add(fives)?,
            fives,
        ))
    }

    fn reduced(is_negative: bool, mantissa: u128, mut twos: i32, mut fives: i32) -> Self {
        if mantissa == 0 {
            return Self {
                is_negative: false,
                odd: 0,
                twos: 0,
                fives: 0,
            };
        }
        let mut odd = mantissa;
        while odd.is_multiple_of(2) {
            odd /= 2;
            twos = twos.saturating_add(1);
        }
        while odd.is_multiple_of(5) {
            odd /= 5;
            fives = fives.saturating_add(1);
        }
        Self {
            is_negative,
            odd,
            twos,
            fives,
        }
    }

    /// Thousandths, rounded up as the API server does; saturates.
    pub(crate) fn thousandths(self) -> i64 {
        let scaled = Self {
            twos: self.twos.saturating_add(3),
            fives: self.fives.saturating_add(3),
            ..self
        };
        whole(scaled.value().ceil())
    }

    /// Units of 2^20, truncated; saturates.
    pub(crate) fn mebi(self) -> i64 {
        let scaled = Self {
            twos: self.twos.saturating_sub(20),
            ..self
        };
        whole(scaled.value().trunc())
    }

    /// Exact for whole numbers up to 2^53.
    #[allow(
        clippy::cast_precision_loss,
        reason = "reports need no more than 53 bits"
    )]
    fn value(self) -> f64 {
        let magnitude = self.odd as f64 * 2_f64.powi(self.twos) * 5_f64.powi(self.fives);
        if self.is_negative {
            -magnitude
        } else {
            magnitude
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is wanted"
)]
fn whole(value: f64) -> i64 {
    value as i64
}

/// The powers of two and ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        exponent => (0, exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}
