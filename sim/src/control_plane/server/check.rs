//! Who may ask, and for which region.

use http::{HeaderMap, header::AUTHORIZATION};
use krane_proto::ctrl::v1::RegionKey;
use tonic::Status;

/// The scheme is compared as the Go server compares it: a capital B and one space.
pub(crate) fn token(headers: &HeaderMap, expected: &str) -> Result<(), Status> {
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if given == Some(expected) {
        Ok(())
    } else {
        Err(Status::unauthenticated("invalid or missing bearer token"))
    }
}

pub(crate) fn region(region: Option<&RegionKey>) -> Result<(), Status> {
    let blank = |text: &str| text.trim().is_empty();
    match region {
        Some(region) if !blank(&region.platform) && !blank(&region.name) => Ok(()),
        Some(_) | None => Err(Status::invalid_argument(
            "region.platform and region.name are required",
        )),
    }
}

pub(crate) fn id(id: &str) -> Result<(), Status> {
    if id.is_empty() {
        Err(Status::invalid_argument("the id is required"))
    } else {
        Ok(())
    }
}
