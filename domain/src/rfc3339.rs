//! The one form of time that Kubernetes writes. jiff's timestamps end on 9999-12-30, and a hold for ever is often written as the
//! end of the year 9999.

/// Seconds since the Unix epoch of `2026-01-31T12:00:00[.5](Z|+01:00)`.
pub(crate) fn unix_seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let (moment, rest) = text.split_at(19);
    let [year, month, day, hour, minute, second] = parts(moment, "dddd-dd-ddTdd:dd:dd")?;
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (zone.len() < fraction.len()).then_some(zone)?
        }
        None => rest,
    };
    let offset = match rest {
        "Z" | "z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let [hours, minutes] = parts(zone.strip_prefix(['+', '-'])?, "dd:dd")?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            sign * (hours * 3600 + minutes * 60)
        }
    };
    let is_valid = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let days = days_since_epoch(year, month, day);
    u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second - offset).ok()
}

/// The numbers of a text, as long as it has this form: `d` for a digit, else the character.
fn parts<const N: usize>(text: &str, form: &str) -> Option<[i64; N]> {
    if text.len() != form.len() {
        return None;
    }
    let mut numbers = [0_i64; N];
    let mut index = 0;
    for (c, expected) in text.chars().zip(form.chars()) {
        match expected {
            'd' => {
                let number = numbers.get_mut(index)?;
                *number = *number * 10 + i64::from(c.to_digit(10)?);
            }
            'T' if c.eq_ignore_ascii_case(&'T') || c == ' ' => index += 1,
            separator if c == separator => index += 1,
            _ => return None,
        }
    }
    Some(numbers)
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let in_year: i64 = (1..month).map(|month| days_in(year, month)).sum();
    before * 365 + leap_days + in_year + day - 1 - 719_162
}

#[cfg(test)]
mod tests;
