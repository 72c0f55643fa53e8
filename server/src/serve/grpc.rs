//! What tonic's transport would do for its services and a plain router does not.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::HeaderMap;
use tonic::{Code, Status};

use crate::connect;

/// Digits of a timeout, without its unit.
const MOST_DIGITS: usize = 8;

/// How long the caller waits, if it says so.
pub(super) fn time_limit(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(text) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let limit = text.to_str().ok().and_then(duration);
    let malformed = || Status::invalid_argument("grpc-timeout is malformed");
    limit.map(Some).ok_or_else(malformed)
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number =
        (1..=MOST_DIGITS).contains(&number.len()) && number.bytes().all(|it| it.is_ascii_digit());
    let number: u64 = is_number.then(|| number.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// A request that tonic itself refuses is refused as in Connect, and as by other servers of gRPC.
///
/// It has codes of its own for three cases, and texts that tell what it read.
pub(super) fn as_in_connect(response: Response) -> Response {
    let Some(status) = response.extensions().get::<Status>() else {
        return response;
    };
    let is_about = |text: &str| status.message().contains(text);
    if status.code() == Code::OutOfRange && is_about("decoded message length too large") {
        connect::too_large().into_http::<Body>()
    } else if status.code() == Code::Internal && is_about("failed to decode Protobuf message") {
        connect::malformed().into_http::<Body>()
    } else if status.code() == Code::Internal
        && (is_about("Unexpected EOF decoding stream") || is_about("Missing request message"))
    {
        connect::broken_off().into_http::<Body>()
    } else {
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue};

    use super::time_limit;

    #[test]
    fn timeouts_are_read_as_documented() {
        let limit = |text: &str| {
            let value = HeaderValue::from_str(text).unwrap();
            time_limit(&HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-timeout"),
                value,
            )]))
        };
        assert_eq!(time_limit(&HeaderMap::new()).unwrap(), None);
        for (text, seconds) in [
            ("1H", 3_600.0),
            ("2M", 120.0),
            ("99999999S", 99_999_999.0),
            ("500000u", 0.5),
            ("20m", 0.02),
            ("0n", 0.0),
        ] {
            let expected = Some(Duration::from_secs_f64(seconds));
            assert_eq!(limit(text).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "S",
            "1",
            "-1S",
            "123456789S",
            "1s",
            "1.5S",
            " 1S",
            "1SS",
        ] {
            assert!(limit(text).is_err(), "{text:?}");
        }
    }
}
