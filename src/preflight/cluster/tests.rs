use super::super::findings::State;
use super::*;

const WANTED: Wanted<'_> = Wanted {
    is_cilium_required: true,
    storage_class: "fast",
};

fn all_well() -> Facts {
    Facts {
        user: "alice".to_owned(),
        needed: Vec::new(),
        wide: Vec::new(),
        gvisor: Presence::There,
        cilium: Presence::There,
        sentinels: Presence::There,
        storage_class: Presence::There,
        pull_secrets: Some(Ok(Vec::new())),
        single_sentinels: Ok(Vec::new()),
        leftovers: Ok(0),
    }
}

/// Those findings that do not pass.
fn odd(facts: &Facts, wanted: Wanted<'_>) -> Vec<(State, Option<&'static str>)> {
    let findings = judge(facts, wanted).into_iter();
    findings
        .filter(|finding| finding.state != State::Pass)
        .map(|finding| (finding.state, finding.code))
        .collect()
}

#[test]
fn what_is_there_passes() {
    assert_eq!(odd(&all_well(), WANTED), []);
}

#[test]
fn what_workloads_cannot_do_without_fails_and_the_rest_warns() {
    let bare = Facts {
        gvisor: Presence::Absent,
        cilium: Presence::Absent,
        sentinels: Presence::Absent,
        storage_class: Presence::Absent,
        pull_secrets: Some(Ok(vec!["ws-1".to_owned()])),
        single_sentinels: Ok(vec!["s-1".to_owned()]),
        leftovers: Ok(3),
        ..all_well()
    };
    assert_eq!(
        odd(&bare, WANTED),
        [
            (State::Fail, Some("krane::check::gvisor")),
            (State::Fail, Some("krane::check::cilium")),
            (State::Fail, Some("krane::check::sentinel_namespace")),
            (State::Warn, Some("krane::check::storage_class")),
            (State::Warn, Some("krane::check::pull_secrets")),
            (State::Warn, Some("krane::check::sentinel_replicas")),
            (State::Warn, Some("krane::check::leftovers")),
        ]
    );
    let unisolated = Wanted {
        is_cilium_required: false,
        ..WANTED
    };
    let cilium = odd(&bare, unisolated)[1];
    assert_eq!(cilium, (State::Warn, Some("krane::check::cilium")));
}

#[test]
fn what_nobody_needs_a_right_for_is_not_looked_at() {
    let facts = Facts {
        storage_class: Presence::Forbidden,
        pull_secrets: Some(Err("no".to_owned())),
        ..all_well()
    };
    assert_eq!(odd(&facts, WANTED), [(State::Skip, None); 2]);
}

#[test]
fn what_is_needed_and_not_known_is_wrong() {
    let facts = |presence: Presence| Facts {
        gvisor: presence.clone(),
        cilium: presence.clone(),
        sentinels: presence.clone(),
        storage_class: presence,
        ..all_well()
    };
    let silent = facts(Presence::Unknown("503".to_owned()));
    let unknown = (State::Fail, Some("krane::check::unknown"));
    let unseen = (State::Skip, None);
    assert_eq!(odd(&silent, WANTED), [unknown, unknown, unknown, unseen]);
    let all: Vec<bool> = judge(&silent, WANTED)
        .iter()
        .filter(|finding| finding.state != State::Pass)
        .map(|finding| finding.is_unknown)
        .collect();
    assert_eq!(all, [true; 4]);
    let unisolated = Wanted {
        is_cilium_required: false,
        ..WANTED
    };
    assert_eq!(odd(&silent, unisolated)[1], unseen);
    let missing = (State::Fail, Some("krane::check::rights"));
    let forbidden = facts(Presence::Forbidden);
    assert_eq!(odd(&forbidden, WANTED), [missing, missing, missing, unseen]);
}

#[test]
fn an_api_server_is_refused_unreached_too_old_or_fine() {
    let greeting = |version, is_refused| Greeting {
        host: "k8s:6443".to_owned(),
        version,
        is_refused,
        date: None,
    };
    let fine = |minor| Ok(((1, minor), format!("Kubernetes v1.{minor}.0")));
    for (greeting, code) in [
        (greeting(fine(33), false), None),
        (greeting(fine(32), false), Some("krane::check::version")),
        (
            greeting(Err("401".to_owned()), true),
            Some("krane::check::credentials"),
        ),
        (
            greeting(Err("refused".to_owned()), false),
            Some("krane::check::api_server"),
        ),
    ] {
        assert_eq!(judge_greeting(&greeting).code, code, "{greeting:?}");
    }
}

#[test]
fn a_line_names_a_few_and_counts_the_rest() {
    let names: Vec<String> = (1..=7).map(|number| format!("s-{number}")).collect();
    assert_eq!(some(&names), "s-1, s-2, s-3, s-4, s-5 and 2 more");
}

/// Whoever reads it may be on a laptop with a kubeconfig, not in a pod.
#[test]
fn the_way_to_the_api_server_is_mended_by_what_is_wrong_with_it() {
    let mend = |why: &str| way_to_api_server(why);
    assert!(mend("invalid peer certificate: not valid for name").contains("certificate authority"));
    assert!(
        mend("tcp connect error: Connection refused (os error 111)").contains("port of `server`")
    );
    assert!(mend("no answer after 4 s").contains("network policies"));
}
