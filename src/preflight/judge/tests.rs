use krane_ports::RpcFailureKind;

use super::super::findings::State;
use super::*;

const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;

fn states(findings: &[Finding]) -> Vec<State> {
    findings.iter().map(|finding| finding.state).collect()
}

fn way_to(reach: &Reach) -> Vec<Finding> {
    way(control("https://control"), reach, NOW)
}

fn addresses() -> Vec<std::net::IpAddr> {
    vec!["10.0.0.1".parse().unwrap()]
}

/// (X4) What is not proved is said where a vault is configured, and when that is.
#[test]
fn what_of_the_secrets_is_unproved_depends_on_the_settings() {
    let why = |is_elected, has_calls| {
        let finding = ownership(is_elected, has_calls);
        assert_eq!(finding.state, State::Warn);
        assert_eq!(finding.code, Some("krane::check::unproved_secrets"));
        finding.why.unwrap()
    };
    let alone = why(false, false);
    assert!(
        alone.starts_with("until it has read the whole stream"),
        "{alone}"
    );
    assert!(!alone.contains("standby") && !alone.contains("Scheduler API"));
    let both = why(true, true);
    assert!(both.contains("standby") && both.contains("Scheduler API"));
}

#[test]
fn a_step_after_a_failed_one_is_not_looked_at() {
    let unresolved = way_to(&Reach::Unresolved("no such host".to_owned()));
    assert_eq!(states(&unresolved), [State::Fail, State::Skip, State::Skip]);
    assert_eq!(unresolved[0].code, Some("krane::check::dns"));
    assert!(unresolved[1].message.contains("not looked at: the name"));
    let unconnected = way_to(&Reach::Unconnected {
        addresses: addresses(),
        why: "connection refused".to_owned(),
    });
    assert_eq!(
        states(&unconnected),
        [State::Pass, State::Fail, State::Skip]
    );
    assert_eq!(unconnected[1].why.as_deref(), Some("connection refused"));
}

#[test]
fn every_reason_to_distrust_has_its_own_remedy() {
    let problems = [
        (TlsProblem::UnknownIssuer, "control.ca_file"),
        (TlsProblem::WrongName, "as the certificate does"),
        (TlsProblem::Expired, "renew"),
        (TlsProblem::NotYetValid, "clocks"),
        (TlsProblem::NoHttp2, "HTTP/2"),
        (TlsProblem::Other("odd".to_owned()), "speaks TLS"),
    ];
    for (why, remedy) in problems {
        let found = way_to(&Reach::Untrusted {
            addresses: addresses(),
            why,
        });
        assert_eq!(states(&found), [State::Pass, State::Pass, State::Fail]);
        let fix = found[2].fix.as_deref().unwrap();
        assert!(fix.contains(remedy), "{fix}");
    }
}

#[test]
fn a_certificate_warns_two_weeks_before_its_end() {
    for (left, state) in [(13 * DAY, State::Warn), (15 * DAY, State::Pass)] {
        let certificate = Certificate {
            not_after: Some(NOW + left),
        };
        let found = way_to(&Reach::Open {
            addresses: addresses(),
            certificate: Some(certificate),
        });
        assert_eq!(found[2].state, state, "{left}");
    }
}

#[test]
fn a_way_without_tls_is_a_warning_only_where_a_token_travels() {
    let open = Reach::Open {
        addresses: addresses(),
        certificate: None,
    };
    assert_eq!(way_to(&open)[2].code, Some("krane::check::plaintext"));
    let found = way(vault("http://vault"), &open, NOW);
    assert_eq!(states(&found), [State::Pass, State::Pass, State::Warn]);
    let why = found[2].why.as_deref();
    assert_eq!(
        why,
        Some("the token and the decrypted secrets travel readable")
    );
    let stored = way(vault_s3("http://s3"), &open, NOW);
    assert_eq!(states(&stored), [State::Pass, State::Pass]);
}

fn refused(code: &'static str) -> Finding {
    handshake(&Handshake {
        accepted: Err(RpcFailure {
            kind: RpcFailureKind::Answered,
            code,
            message: "said so".to_owned(),
        }),
        date: None,
    })
}

#[test]
fn a_refused_token_another_protocol_and_the_rest_are_told_apart() {
    for (code, expected) in [
        ("unauthenticated", "krane::check::token"),
        ("permission_denied", "krane::check::token"),
        ("unimplemented", "krane::check::protocol"),
        ("unavailable", "krane::check::control_plane"),
    ] {
        assert_eq!(refused(code).code, Some(expected), "{code}");
    }
    let accepted = Handshake {
        accepted: Ok(()),
        date: None,
    };
    assert_eq!(handshake(&accepted).state, State::Pass);
}

#[test]
fn clocks_are_judged_without_the_time_that_the_call_took() {
    let at = |date: i64| clock("time.x", "x", Some(date), (NOW, NOW + 3)).state;
    for (date, state) in [
        (NOW - 1, State::Pass),
        (NOW + 3, State::Pass),
        (NOW + 8, State::Pass),
        (NOW + 9, State::Warn),
        (NOW + 63, State::Warn),
        (NOW + 64, State::Fail),
        (NOW - 6, State::Pass),
        (NOW - 7, State::Warn),
        (NOW - 62, State::Fail),
    ] {
        assert_eq!(at(date), state, "{}", date - NOW);
    }
    let none = clock("time.x", "x", None, (NOW, NOW));
    assert_eq!(none.state, State::Skip);
    let ahead = clock("time.x", "x", Some(NOW - 100), (NOW, NOW));
    assert!(ahead.message.contains("99 s ahead of"), "{ahead:?}");
}

#[test]
fn a_date_of_http_is_read() {
    assert_eq!(moment("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    assert_eq!(moment("yesterday"), None);
}
