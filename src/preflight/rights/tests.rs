use krane_settings::LoadInput;

use super::super::findings::State;
use super::*;

fn settings(more: &[(&str, &str)]) -> Settings {
    let needed = [
        ("KRANE__REGION", "us-east-1.aws"),
        ("KRANE__CONTROL__URL", "http://control"),
        ("KRANE__CONTROL__TOKEN", "t"),
    ];
    let env = needed.iter().chain(more);
    let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::load(&LoadInput {
        env: env.collect(),
        ..LoadInput::default()
    })
    .unwrap()
}

fn has(rights: &[Right], verb: &str, subject: &str) -> bool {
    let mut found = rights.iter();
    found.any(|right| right.verb == verb && right.subject() == subject)
}

#[test]
fn a_right_that_belongs_to_a_setting_is_needed_only_with_it() {
    let plain = needed(&settings(&[]), "krane");
    assert!(has(&plain, "patch", "replicasets.apps"));
    assert!(has(&plain, "delete", "services in sentinel"));
    assert!(has(&plain, "get", "runtimeclasses.node.k8s.io/gvisor"));
    let full = needed(
        &settings(&[
            ("KRANE__VAULT__URL", "http://vault"),
            ("KRANE__REGISTRY__URL", "r"),
            ("KRANE__REGISTRY__USERNAME", "u"),
            ("KRANE__REGISTRY__PASSWORD", "p"),
            ("KRANE__DEPLOYMENTS__REPLACE_OUTDATED_PODS", "unready"),
            ("KRANE__LEASE__ENABLED", "true"),
        ]),
        "agents",
    );
    for (verb, subject) in [
        ("create", "tokenreviews.authentication.k8s.io"),
        ("list", "secrets/depot-pull-secret"),
        ("delete", "pods"),
        ("patch", "leases.coordination.k8s.io in agents"),
    ] {
        assert!(has(&full, verb, subject), "{verb} {subject}");
        assert!(!has(&plain, verb, subject), "{verb} {subject}");
    }
}

fn asked(answer: impl Fn(&Right) -> Result<bool, String>) -> Vec<Asked> {
    let rights = needed(&settings(&[]), "krane");
    let ask = |right: Right| {
        let answer = answer(&right);
        (right, answer)
    };
    rights.into_iter().map(ask).collect()
}

#[test]
fn what_is_missing_is_one_line_per_kind() {
    let missing = asked(|right| Ok(right.resource != "replicasets" || right.verb == "get"));
    let [finding] = &judge(&missing, "alice")[..] else {
        panic!("one line");
    };
    assert_eq!(finding.state, State::Fail);
    assert_eq!(
        finding.message,
        "replicasets.apps: list, watch, create, patch, delete is not allowed"
    );
    assert_eq!(finding.why.as_deref(), Some("no role gives it to alice"));
}

#[test]
fn all_there_is_one_line() {
    let [finding] = &judge(&asked(|_| Ok(true)), "alice")[..] else {
        panic!("one line");
    };
    assert_eq!(finding.state, State::Pass);
}

#[test]
fn what_nobody_knows_is_wrong_and_hides_no_missing_right() {
    let unknown = judge(&asked(|_| Err("503".to_owned())), "alice");
    assert_eq!(unknown[0].state, State::Fail);
    assert!(unknown[0].is_unknown);
    assert_eq!(unknown[0].why.as_deref(), Some("503"));
    let some = asked(
        |right| match (right.resource.as_str(), right.verb.as_str()) {
            ("replicasets", "patch") => Ok(false),
            ("replicasets", "list") => Err("too late".to_owned()),
            _ => Ok(true),
        },
    );
    let [missing, unknown] = &judge(&some, "alice")[..] else {
        panic!("two lines");
    };
    assert_eq!(missing.message, "replicasets.apps: patch is not allowed");
    assert!(unknown.message.contains("has 1 of"), "{unknown:?}");
}

#[test]
fn a_width_that_nobody_knows_is_said() {
    let unknown = |right| (right, Err("503".to_owned()));
    let unknown: Vec<Asked> = too_wide().into_iter().map(unknown).collect();
    let found = judge_width(&unknown, "system:serviceaccount:krane:krane").unwrap();
    assert!(found.state == State::Skip && found.is_unknown, "{found:?}");
    assert_eq!(judge_width(&unknown, "alice"), None);
}

#[test]
fn wide_rights_alarm_only_for_the_account_of_a_program() {
    let wide: Vec<Asked> = too_wide().into_iter().map(|it| (it, Ok(true))).collect();
    assert_eq!(judge_width(&wide, "alice"), None);
    let found = judge_width(&wide, "system:serviceaccount:krane:krane").unwrap();
    assert!(found.message.contains("list secrets"), "{found:?}");
    let none: Vec<Asked> = too_wide().into_iter().map(|it| (it, Ok(false))).collect();
    assert_eq!(
        judge_width(&none, "system:serviceaccount:krane:krane"),
        None
    );
}
