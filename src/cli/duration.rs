//! Lengths of time on the command line.

use std::time::Duration;

/// Longer demos are asked for without an end.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// A number with ms, s or m; seconds without a unit. For the parser of a flag: an error is what a person reads.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a length of time, such as 30s or 2m".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let length = match &text[digits.len()..] {
        "ms" => Duration::from_millis(number),
        "" | "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        _ => return Err(wrong()),
    };
    if length > LONGEST {
        return Err("must be a week at most; without --for there is no end".to_owned());
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "s", "-1s", "1.5s", "2 d", "é", "18446744073709551615s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
