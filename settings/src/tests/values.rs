//! How single values are read.

use std::time::Duration;

use super::super::types::{parse_duration, show_duration};
use super::super::{ByteSize, RateLimit};
use super::Given;

#[test]
fn an_instance_id_is_made_up_and_differs() {
    let (one, other) = (Given::required().settings(), Given::required().settings());
    let suffix = one.instance_id.strip_prefix("ins_").unwrap();
    assert!(
        suffix.len() == 8 && suffix.chars().all(|c| c.is_ascii_alphanumeric()),
        "{suffix}"
    );
    assert_ne!(one.instance_id, other.instance_id);
}

/// unkeyed/unkey e891de1317, PR #5683 (A61): port 0 opens no listener for metrics.
#[test]
fn zero_switches_off_what_documents_it() {
    let settings = Given::required().file("replay.interval = 0").settings();
    assert_eq!(settings.replay.interval, None);
    let settings = Given::required()
        .file("replay.interval = '0s'\nadmin.listen = ''")
        .settings();
    assert_eq!(settings.replay.interval, None);
    assert_eq!(settings.admin.listen, None);
    let settings = Given::required()
        .set("observability.metrics.prometheus_port", "0")
        .settings();
    assert_eq!(settings.observability.metrics.prometheus_port, None);
    let settings = Given::required().file("k8s.qps = 5").settings();
    let RateLimit { per_second, burst } = settings.k8s.rate_limit.unwrap();
    assert_eq!(per_second, burst, "without a burst of its own");
}

#[test]
fn addresses_keep_path_and_port_and_lose_the_last_slash() {
    for (text, expected) in [
        ("http://[::1]:7091", "http://[::1]:7091"),
        ("https://host/base/", "https://host/base"),
        ("http://127.0.0.1:80/", "http://127.0.0.1:80"),
    ] {
        let given = Given::required().set("control.url", text);
        assert_eq!(given.settings().control.url.as_str(), expected);
    }
}

#[test]
fn durations_and_sizes_are_read_as_go_and_kubernetes_write_them() {
    for (text, millis) in [
        ("500ms", 500),
        ("1m30s", 90_000),
        ("1.5h", 5_400_000),
        ("0", 0),
        ("0.3s", 300),
    ] {
        assert_eq!(
            parse_duration(text),
            Some(Duration::from_millis(millis)),
            "{text}"
        );
    }
    for text in [
        "", "s", "1", "1 s", "1x", "-1s", "1s-", "1..5s", "NaNs", "1e400h",
    ] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
    for text in ["500ms", "90s", "24h"] {
        assert_eq!(show_duration(parse_duration(text).unwrap()), text);
    }
    for (text, bytes) in [
        ("64Mi", 64 << 20),
        ("1GiB", 1 << 30),
        ("5KB", 5_000),
        ("7", 7),
    ] {
        assert_eq!(
            ByteSize::parse(text),
            Some(ByteSize::from_bytes(bytes)),
            "{text}"
        );
    }
    assert_eq!(ByteSize::from_mebibytes(256).to_string(), "256MiB");
}
