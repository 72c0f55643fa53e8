//! The end of a certificate's validity, and nothing else of it. rustls has verified the certificate
//! before and keeps the moment to itself.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The Unix second of the end; `None` for whatever is not laid out as RFC 5280 says.
pub(super) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    let (tag, _, after) = element(rest)?;
    if tag == VERSION {
        rest = after;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, rest) = element(validity)?;
    let (tag, text, _) = element(rest)?;
    moment(tag, std::str::from_utf8(text).ok()?)
}

/// Tag, content and what follows.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let add = |length: usize, byte: &u8| length.checked_mul(256)?.checked_add((*byte).into());
        (bytes.iter().try_fold(0, add)?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn moment(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let civil = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some(TimeZone::UTC.to_timestamp(civil).ok()?.as_second())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["control".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_is_read_in_both_forms_of_time() {
        assert_eq!(not_after(&certificate(2031)), Some(1_930_089_600));
        assert_eq!(not_after(&certificate(2060)), Some(2_845_324_800));
    }

    #[test]
    fn whatever_is_cut_off_has_no_end() {
        let whole = certificate(2031);
        for length in 0..80 {
            assert_eq!(not_after(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(not_after(&[0x30, 0xff, 1, 2]), None);
    }
}
