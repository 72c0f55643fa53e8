use serde_json::{Value, json};

use super::{Parsed, parse, probe};
use crate::kinds::deployment::{Healthcheck, ProbeMethod};

fn read(json: &str) -> Healthcheck {
    match parse(json.as_bytes()) {
        Ok(Parsed::Probe(healthcheck)) => healthcheck,
        other => panic!("{json}: {other:?}"),
    }
}

fn defaults(path: &str) -> Healthcheck {
    Healthcheck {
        method: ProbeMethod::Get,
        path: path.to_owned(),
        interval_seconds: 0,
        timeout_seconds: 0,
        failure_threshold: 0,
        initial_delay_seconds: 0,
    }
}

#[test]
fn nothing_and_null_are_no_healthcheck() {
    for json in ["", "null", " null\n"] {
        assert_eq!(parse(json.as_bytes()), Ok(Parsed::None), "{json:?}");
    }
}

#[test]
fn keys_match_whatever_their_case_and_the_last_one_wins() {
    let json = r#"{"METHOD":"POST","Path":"/a","path":"/b","INTERVALSECONDS":10,"timeoutseconds":5,
        "FailureThreshold":3,"initialDelaySeconds":1,"successThreshold":9,"x":{"path":"/c"}}"#;
    let expected = Healthcheck {
        method: ProbeMethod::Post,
        path: "/b".to_owned(),
        interval_seconds: 10,
        timeout_seconds: 5,
        failure_threshold: 3,
        initial_delay_seconds: 1,
    };
    assert_eq!(read(json), expected);
}

#[test]
fn anything_but_post_is_get() {
    for method in ["GET", "post", "HEAD", ""] {
        let json = format!(r#"{{"method":"{method}","path":"/a"}}"#);
        assert_eq!(read(&json), defaults("/a"), "{method}");
    }
}

#[test]
fn bad_numbers_are_clamped_and_null_counts_as_absent() {
    let json = r#"{"path":null,"intervalSeconds":-1,"timeoutSeconds":-9223372036854775808,
        "failureThreshold":9223372036854775807,"initialDelaySeconds":null}"#;
    let expected = Healthcheck {
        failure_threshold: 2_147_483_647,
        ..defaults("/")
    };
    assert_eq!(read(json), expected);
}

#[test]
fn a_path_gets_its_leading_slash() {
    for (path, expected) in [
        ("healthz", "/healthz"),
        ("", "/"),
        ("/a?b=c", "/a?b=c"),
        ("@x", "/@x"),
    ] {
        assert_eq!(read(&format!(r#"{{"path":"{path}"}}"#)), defaults(expected));
    }
}

#[test]
fn a_path_that_cannot_be_meant_is_invalid() {
    let long = "x".repeat(3000);
    for path in ["-x", "/a\\nb", "/a\\u0000", "/\\u007f", long.as_str()] {
        let invalid = parse(format!(r#"{{"path":"{path}"}}"#).as_bytes());
        assert_eq!(
            invalid.map_err(|invalid| invalid.field),
            Err("healthcheck.path".to_owned())
        );
    }
}

#[test]
fn what_cannot_be_read_is_a_warning_without_its_content() {
    for json in [
        "{",
        "[]",
        "5",
        "\"secret\"",
        r#"{"path":5}"#,
        r#"{"intervalSeconds":1.5}"#,
        r#"{"intervalSeconds":"secret"}"#,
        r#"{"path":"/"} trailing"#,
    ] {
        match parse(json.as_bytes()) {
            Ok(Parsed::Unreadable(warning)) => {
                assert_eq!(warning.field, "healthcheck");
                assert!(!warning.to_string().contains("secret"), "{warning}");
            }
            other => panic!("{json}: {other:?}"),
        }
    }
    assert!(matches!(
        parse(b"{\"path\":\"\xff\"}"),
        Ok(Parsed::Unreadable(_))
    ));
}

#[test]
fn a_get_probe_asks_over_http_and_omits_zeros() {
    let expected = json!({ "httpGet": { "path": "/", "port": 8080 } });
    assert_eq!(probe(&defaults("/"), 8080), expected);
    let all = Healthcheck {
        interval_seconds: 10,
        timeout_seconds: 5,
        failure_threshold: 3,
        initial_delay_seconds: 1,
        ..defaults("/x")
    };
    let expected: Value = json!({
        "httpGet": { "path": "/x", "port": 1 },
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
        "initialDelaySeconds": 1,
    });
    assert_eq!(probe(&all, 1), expected);
}

#[test]
fn a_post_probe_runs_wget_without_a_shell() {
    let post = Healthcheck {
        method: ProbeMethod::Post,
        ..defaults("/a b;$(c)")
    };
    let command = [
        "wget",
        "--spider",
        "--post-data=",
        "-q",
        "http://localhost:80/a b;$(c)",
    ];
    assert_eq!(probe(&post, 80), json!({ "exec": { "command": command } }));
}
