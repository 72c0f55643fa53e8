//! The codes that calls end with, krane's own and those it makes: the same in gRPC and Connect,
//! spelled differently.

use http::StatusCode;
use tonic::Code;

/// The name in Connect, in metrics and in logs.
pub const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "canceled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

/// How many codes there are, success included.
const COUNT: usize = 17;

/// Every name, that of success first.
pub const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut number = 0;
    while number < COUNT {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "17"
        )]
        let code = Code::from_i32(number as i32);
        names[number] = name(code);
        number += 1;
    }
    names
};

/// The code of an error of this name.
pub fn of_error(text: &str) -> Option<Code> {
    let number = NAMES.iter().position(|name| *name == text)?;
    let code = Code::from_i32(i32::try_from(number).ok()?);
    (code != Code::Ok).then_some(code)
}

/// The HTTP status that Connect sends with a code.
pub fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        // "Client closed request": no constant has this name.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What an HTTP status says when no error comes with it.
pub fn of_http(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        // Never `not_found`: it says something about the server, not about what was asked for.
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_its_own_name() {
        let names: BTreeSet<_> = (0..=16)
            .map(|number| name(Code::from_i32(number)))
            .collect();
        assert_eq!(names.len(), 17);
        assert_eq!(names, NAMES.into_iter().collect());
        for number in 1..=16 {
            let code = Code::from_i32(number);
            assert_eq!(of_error(name(code)), Some(code));
        }
        assert_eq!(of_error("ok"), None, "success is no error");
        assert_eq!(of_error("cancelled"), None);
    }
}
