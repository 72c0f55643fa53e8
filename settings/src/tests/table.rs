//! Every key against every way to set it and to get it wrong.

use std::collections::BTreeSet;

use super::super::keys::{FILE_SUFFIX, KEYS, Key, OTEL_ENABLED, find};
use super::super::{DEFAULT_TOML, Kind, Origin};
use super::Given;

const DEFAULTS: &[(&str, &str)] = &[
    ("rpc_port", "8070"),
    ("storage_class_name", "\"ebs-csi-gp3\""),
    ("control.max_backlog", "\"256MiB\""),
    ("secrets.audience", "\"\""),
    ("scheduler.token", "\"\""),
    ("rpc.reflection", "false"),
    ("deployments.replace_outdated_pods", "\"never\""),
    ("deployments.request_divisor", "4"),
    ("deployments.max_replicas", "1000"),
    ("cilium.required", "true"),
    ("sentinel.probe_paths", "\"legacy\""),
    ("report.address", "\"dns\""),
    ("health.listen", "\"\""),
    ("resync.interval", "\"60s\""),
    ("replay.interval", "\"10m\""),
    ("safety.writes", "\"on\""),
    ("safety.upgrades", "\"on\""),
    ("safety.max_deletes_percent", "10"),
    ("k8s.max_in_flight", "32"),
    ("k8s.qps", "0"),
    ("k8s.burst", "0"),
    ("lease.enabled", "false"),
    ("lease.duration", "\"15s\""),
    ("lease.renew", "\"10s\""),
    ("lease.retry", "\"2s\""),
    ("admin.listen", "\"127.0.0.1:9091\""),
    ("admin.actions", "false"),
    ("observability.metrics.prometheus_port", "0"),
    ("observability.logging.level", "\"info\""),
    ("observability.logging.format", "\"auto\""),
    ("observability.logging.sample_rate", "1"),
    ("observability.logging.slow_threshold", "\"1s\""),
];

/// Keys that no layer sets by itself; `instance_id` is made up.
const WITHOUT_DEFAULT: &[&str] = &[
    "instance_id",
    "region",
    "platform",
    "control.url",
    "control.token",
    "control.ca_file",
    "registry.url",
    "registry.username",
    "registry.password",
    "vault.url",
    "vault.token",
    "vault.master_keys",
    "vault.s3.url",
    "vault.s3.bucket",
    "vault.s3.access_key_id",
    "vault.s3.access_key_secret",
    "rpc.tls.cert",
    "rpc.tls.key",
    "admin.token",
    "observability.tracing.endpoint",
    "observability.tracing.sample_rate",
];

#[test]
fn every_key_has_its_documented_default_or_none() {
    let loaded = Given::required().load().unwrap();
    for (path, expected) in DEFAULTS {
        let value = loaded
            .effective
            .values
            .iter()
            .find(|value| value.path == *path)
            .unwrap();
        assert_eq!(
            value.shown.as_deref().unwrap_or_default(),
            *expected,
            "{path}"
        );
        assert_eq!(value.origin, Some(Origin::Default), "{path}");
    }
    let covered: BTreeSet<_> = DEFAULTS
        .iter()
        .map(|(path, _)| *path)
        .chain(WITHOUT_DEFAULT.iter().copied())
        .collect();
    assert_eq!(covered, KEYS.iter().map(|key| key.path).collect());
}

#[test]
fn the_default_file_mentions_every_key_and_the_file_form_of_every_secret() {
    for key in KEYS {
        let name = key.path.rsplit('.').next().unwrap();
        let mentions = |name: &str| {
            let assigned = |line: &str| line.trim_start_matches(['#', ' ']).starts_with(name);
            DEFAULT_TOML
                .lines()
                .any(|line| assigned(line) && line.contains(" ="))
        };
        let file_form = format!("{name}{FILE_SUFFIX}");
        let documented = mentions(&format!("{name} ="))
            || (key.kind.is_secret() && mentions(&format!("{file_form} =")));
        assert!(documented, "{} is not in config/default.toml", key.path);
        if key.kind.is_secret() {
            assert!(
                DEFAULT_TOML.contains(&file_form),
                "{file_form} is not in config/default.toml"
            );
        }
    }
}

#[test]
fn the_default_file_names_the_flat_variable_beside_its_key() {
    for (key, flat) in KEYS.iter().filter_map(|key| Some((key, key.flat?))) {
        let name = key.path.rsplit('.').next().unwrap_or(key.path);
        let beside = DEFAULT_TOML.lines().any(|line| {
            let line = line.trim_start_matches("# ");
            line.starts_with(name) && line.ends_with(&format!("or {flat}"))
        });
        assert!(beside, "{flat} is not beside {}", key.path);
    }
}

/// A configuration in which every group is complete, so that one key more breaks nothing.
fn everything() -> Given {
    let given = Given::required();
    let pem = given.write("some.pem", "pem").display().to_string();
    let text = format!(
        "[control]\nca_file = '{pem}'\n\
         [registry]\nurl = 'r'\nusername = 'u'\npassword = 'p'\n\
         [vault]\nmaster_keys = ['k']\n\
         [vault.s3]\nurl = 'http://s3'\nbucket = 'b'\naccess_key_id = 'i'\naccess_key_secret = 's'\n\
         [rpc.tls]\ncert = '{pem}'\nkey = '{pem}'\n\
         [admin]\ntoken = 't'\n\
         [observability.tracing]\n"
    );
    given.file(&text)
}

/// A valid value for the key, as text; files named by it exist.
fn valid(key: &Key, given: &Given) -> String {
    if key.kind == Kind::Path {
        given.write("other.pem", "pem").display().to_string()
    } else {
        key.example.to_owned()
    }
}

/// One line of TOML that sets `path`.
fn assignment(path: &str, value: &str, kind: Kind) -> String {
    if matches!(kind, Kind::Integer { .. } | Kind::Boolean | Kind::Fraction) {
        format!("{path} = {value}\n")
    } else {
        format!("{path} = '{value}'\n")
    }
}

#[test]
fn every_key_can_be_set_in_a_file() {
    for key in KEYS {
        let given = everything();
        let value = valid(key, &given);
        let given = given.file(&assignment(key.path, &value, key.kind));
        let (shown, origin) = given.effective(key.path);
        assert_eq!(
            origin,
            format!("file {}", given.input.files[2].display()),
            "{}",
            key.path
        );
        check_shown(key, &shown, &value);
    }
}

#[test]
fn every_key_can_be_set_by_its_own_variable() {
    for key in KEYS {
        let given = everything();
        let value = valid(key, &given);
        let given = given.env(&key.variable(), &value);
        let (shown, origin) = given.effective(key.path);
        assert_eq!(origin, format!("environment variable {}", key.variable()));
        check_shown(key, &shown, &value);
    }
}

#[test]
fn every_flat_variable_sets_its_key() {
    for (key, flat) in KEYS.iter().filter_map(|key| Some((key, key.flat?))) {
        let given = everything();
        let value = valid(key, &given);
        let given = given.env(flat, &value);
        let (shown, origin) = given.effective(key.path);
        assert_eq!(origin, format!("environment variable {flat}"));
        check_shown(key, &shown, &value);
    }
}

#[test]
fn every_key_but_a_secret_can_be_set_by_a_flag() {
    for key in KEYS {
        let given = everything();
        let value = valid(key, &given);
        let given = given.set(key.path, &value);
        if key.kind.is_secret() {
            let problem = given.problems().remove(0);
            assert_eq!(
                problem.kind.code(),
                "krane::config::secret_in_flag",
                "{}",
                key.path
            );
            assert!(!problem.to_string().contains(&value), "{problem}");
        } else {
            let (shown, origin) = given.effective(key.path);
            assert_eq!(origin, "flag --set", "{}", key.path);
            check_shown(key, &shown, &value);
        }
    }
}

fn check_shown(key: &Key, shown: &str, value: &str) {
    if key.kind.is_secret() {
        assert_eq!(shown, "\"********\"", "{}", key.path);
        return;
    }
    let same = match (shown.trim_matches('"').parse::<f64>(), value.parse::<f64>()) {
        (Ok(shown), Ok(value)) => (shown - value).abs() < f64::EPSILON,
        _ => shown.trim_matches('"') == value,
    };
    assert!(same, "{}: {shown} is not {value}", key.path);
}

#[test]
fn every_secret_can_be_read_from_a_file() {
    for key in KEYS.iter().filter(|key| key.kind.is_secret()) {
        let given = everything();
        let path = given.write("secret", "from-a-file\n").display().to_string();
        let file_key = format!("{}{FILE_SUFFIX}", key.path);
        let given = given.file(&format!("{file_key} = '{path}'\n"));
        let (shown, _) = given.effective(&file_key);
        assert_eq!(shown.trim_matches('"'), path);
    }
}

#[test]
fn every_key_refuses_a_value_of_another_type() {
    for key in KEYS {
        let given = everything().file(&format!("{} = [7]\n", key.path));
        let origin = Origin::File(given.input.files[2].clone());
        let problems = given.problems();
        let problem = problems
            .iter()
            .find(|problem| problem.key == key.path)
            .unwrap();
        assert_eq!(
            problem.kind.code(),
            "krane::config::wrong_type",
            "{problem}"
        );
        assert_eq!(problem.origin.as_ref(), Some(&origin));
        assert_eq!(problem.value.is_none(), key.kind.is_secret(), "{problem}");
    }
}

fn unacceptable(kind: &Kind) -> Vec<String> {
    let texts: &[&str] = match kind {
        Kind::Text => &["two\nlines", " spaces "],
        Kind::Integer { min, max } => {
            let huge = "99999999999999999999999999999999999999";
            return vec![
                (min - 1).to_string(),
                (max + 1).to_string(),
                huge.to_owned(),
            ];
        }
        Kind::Fraction => &["1.5", "-0.1", "NaN", "inf"],
        Kind::Boolean => &["perhaps", ""],
        Kind::Duration { .. } => &["2000h", "-1s", "10", "1.5", "ten seconds", "1s2", ""],
        Kind::Bytes { .. } => &[
            "1B",
            "900GiB",
            "many",
            "1.5MiB",
            "99999999999999999999GiB",
            "",
        ],
        Kind::Url => &[
            "ctrl:8080",
            "ftp://x",
            "http://",
            "https://u:p@host",
            "http://host?q",
            "http://h:0",
            "http://h:70000",
            "http://h:port",
            "http://:80",
        ],
        Kind::Address => &["localhost:9091", ":9091", "127.0.0.1", "127.0.0.1:99999"],
        Kind::Path => &["/no/such/file"],
        Kind::Choice(_) => &["nonsense", ""],
        Kind::Token => &["line\nbreak", "umläut", "tab\t"],
        Kind::Secret | Kind::SecretList => &[],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn every_key_refuses_values_outside_its_range() {
    for key in KEYS {
        for value in unacceptable(&key.kind) {
            let given = everything().env(&key.variable(), &value);
            let problems = given.problems();
            let problem = problems.iter().find(|problem| problem.key == key.path);
            let problem = problem.unwrap_or_else(|| panic!("{} took {value:?}", key.path));
            assert_eq!(problem.origin, Some(Origin::Variable(key.variable())));
            assert!(!problem.help.is_empty());
        }
    }
}

#[test]
fn keys_and_their_other_names_are_unique() {
    let flat: Vec<_> = KEYS
        .iter()
        .filter_map(|key| key.flat)
        .chain([OTEL_ENABLED])
        .collect();
    let flags: Vec<_> = KEYS.iter().filter_map(|key| key.flag).collect();
    for names in [flat, flags, KEYS.iter().map(|key| key.path).collect()] {
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
    assert!(
        KEYS.iter()
            .all(|key| find(key.path).is_some_and(|found| found.path == key.path))
    );
    assert!(
        KEYS.iter()
            .all(|key| !(key.kind.is_secret() && key.flag.is_some()))
    );
}
