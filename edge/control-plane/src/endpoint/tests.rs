use std::io::Write as _;
use std::path::Path;

use super::{Endpoint, EndpointError, origin};

fn check_origin(url: &str, expected: &str) {
    assert_eq!(origin(url).unwrap().to_string(), expected, "for {url}");
}

#[test]
fn base_path_is_kept_and_trailing_slashes_are_not() {
    check_origin("http://control:8080", "http://control:8080/");
    check_origin("http://control:8080/", "http://control:8080/");
    check_origin("https://control/base", "https://control/base");
    check_origin("https://control/base/path//", "https://control/base/path");
    check_origin(" http://[::1]:80 \n", "http://[::1]:80/");
}

#[test]
fn unusable_addresses_are_refused_with_their_reason() {
    let refusal = |url| origin(url).unwrap_err();
    assert!(matches!(refusal("control:80"), EndpointError::Scheme));
    assert!(matches!(refusal("control"), EndpointError::Scheme));
    assert!(matches!(refusal("/base"), EndpointError::Scheme));
    assert!(matches!(refusal("grpc://control"), EndpointError::Scheme));
    assert!(matches!(refusal("http://"), EndpointError::Url(_)));
    assert!(matches!(refusal(""), EndpointError::Url(_)));
    assert!(matches!(
        refusal("http://control?x=1"),
        EndpointError::Query
    ));
    assert!(matches!(
        refusal("http://user:pass@control"),
        EndpointError::UserInfo
    ));
}

#[test]
fn a_refusal_does_not_repeat_the_url() {
    let error = format!(
        "{:?}",
        origin("http://user:hunter2-canary@control").unwrap_err()
    );
    assert!(!error.contains("hunter2-canary"));
}

#[test]
fn ca_file_without_a_certificate_is_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let refusal = |path: &Path| Endpoint::new("https://control", Some(path)).unwrap_err();
    assert!(matches!(
        refusal(file.path()),
        EndpointError::CaEmpty { .. }
    ));
    file.write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    assert!(matches!(
        refusal(file.path()),
        EndpointError::CaCertificate { .. }
    ));
    let missing = file.path().with_extension("gone");
    assert!(matches!(refusal(&missing), EndpointError::CaFile { .. }));
}

#[test]
fn authorities_are_not_read_without_tls() {
    let endpoint = Endpoint::new("http://control", Some("/does/not/exist".as_ref())).unwrap();
    assert!(endpoint.tls.is_none());
}
