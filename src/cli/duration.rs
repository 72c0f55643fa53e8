//! Lengths of time on the command line.

use std::time::Duration;

use krane_settings::parse_duration;

/// Longer demos are asked for without an end.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// As in the settings, such as 1m30s; a bare number counts seconds. For the parser of a flag: an error is what a person
/// reads.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let length = seconds.or_else(|| parse_duration(text));
    let length = length.ok_or("must be a length of time, such as 30s or 2m")?;
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
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        for wrong in ["", "s", "-1s", "1..5s", "2 d", "é", "18446744073709551615s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
