//! Whatever stands in a health check, the probe that comes of it is one that an API server takes.

use krane_testfuzz::Fuzz;

use super::{Parsed, parse, probe};

#[test]
fn a_probe_counts_in_what_the_api_server_can_hold() {
    let fuzz = Fuzz::new("health check")
        .document(
            r#"{"method":"GET","path":"/health","intervalSeconds":10,"timeoutSeconds":5,
                "failureThreshold":3,"initialDelaySeconds":1}"#,
        )
        .document(r#"{"method":"POST","path":"/"}"#)
        .words([
            "null",
            "-1",
            "2147483648",
            "0",
            "1e9",
            "\"POST\"",
            "\\u0000",
            "'; rm",
            "%0a",
        ]);
    fuzz.run(|document| {
        let Ok(Parsed::Probe(check)) = parse(document) else {
            return;
        };
        let probe = probe(&check, 8080);
        for number in probe.as_object().unwrap().values() {
            let fits = number
                .as_i64()
                .is_none_or(|it| i32::try_from(it).is_ok_and(|it| it > 0));
            assert!(fits, "{probe}");
        }
        let path = &probe["httpGet"]["path"];
        assert!(
            path.is_null() || path.as_str().unwrap().starts_with('/'),
            "{probe}"
        );
    });
}
