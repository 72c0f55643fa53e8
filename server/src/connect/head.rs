//! What the headers of a Connect request ask for.

use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tonic::Status;

const VERSION: &str = "connect-protocol-version";
const TIMEOUT: &str = "connect-timeout-ms";
/// Digits of the longest timeout: about 115 days.
const MOST_DIGITS: usize = 10;

/// How long the caller waits, if it says so; or why its request cannot be taken.
pub(super) fn check(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    if headers.get(VERSION).is_some_and(|version| version != "1") {
        return Err(Status::invalid_argument(
            "connect-protocol-version must be \"1\"",
        ));
    }
    let limit = match headers.get(TIMEOUT) {
        None => None,
        Some(text) => Some(milliseconds(text.as_bytes()).ok_or_else(|| {
            Status::invalid_argument("connect-timeout-ms must be a number of at most 10 digits")
        })?),
    };
    let mut encodings = headers.get_all(CONTENT_ENCODING).into_iter();
    if encodings.any(|encoding| !encoding.is_empty() && encoding != "identity") {
        return Err(Status::unimplemented(
            "unknown compression: supported encodings are [identity]",
        ));
    }
    Ok(limit)
}

fn milliseconds(text: &[u8]) -> Option<Duration> {
    let is_number = (1..=MOST_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let number = is_number.then(|| std::str::from_utf8(text).ok())??;
    number.parse().ok().map(Duration::from_millis)
}
