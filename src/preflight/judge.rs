//! What was seen, judged. Pure: moments and facts are passed in.

use jiff::fmt::rfc2822;
use krane_control_plane::Handshake;
use krane_control_plane::reach::{Certificate, Reach, TlsProblem};
use krane_ports::RpcFailure;

use super::findings::{Finding, Group};

/// A certificate with less than this left is worth a warning, in seconds.
const SOON: i64 = 14 * 24 * 60 * 60;
/// Clocks further apart than this, in seconds, are worth a warning …
const SKEW_TO_KNOW: i64 = 5;
/// … and further than this are wrong: tokens and certificates fail.
const SKEW_TO_FAIL: i64 = 60;

/// An address of the configuration, and what its checks are called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The key that names it.
    pub key: &'static str,
    /// The key of its authorities, if it has one.
    pub ca_key: Option<&'static str>,
    /// The address.
    pub url: &'a str,
    /// `dns`, `tcp` and `tls` of it.
    pub checks: [&'static str; 3],
    /// What should not go there unencrypted, if anything.
    pub carries: Option<&'static str>,
}

/// `control.url`
pub(super) const fn control(url: &str) -> Place<'_> {
    Place {
        key: "control.url",
        ca_key: Some("control.ca_file"),
        url,
        checks: [
            "control_plane.dns",
            "control_plane.tcp",
            "control_plane.tls",
        ],
        carries: Some("the bearer token and every state"),
    }
}

/// `vault.url`
pub(super) const fn vault(url: &str) -> Place<'_> {
    Place {
        carries: Some("the token and the decrypted secrets"),
        ..of_vault("vault.url", url)
    }
}

/// `vault.s3.url`: requests are signed, and keys are stored encrypted.
pub(super) const fn vault_s3(url: &str) -> Place<'_> {
    of_vault("vault.s3.url", url)
}

const fn of_vault<'a>(key: &'static str, url: &'a str) -> Place<'a> {
    Place {
        key,
        ca_key: None,
        url,
        checks: ["vault.dns", "vault.tcp", "vault.tls"],
        carries: None,
    }
}

/// How far the way to an address goes.
pub(super) fn way(place: Place<'_>, reach: &Reach, now: i64) -> Vec<Finding> {
    let Place { key, url, .. } = place;
    let [dns, tcp, tls] = place.checks;
    let group = Group::Network;
    let skip = |check, because: &str| Finding::skip(group, check, because);
    let addresses = match reach {
        Reach::Unresolved(why) => {
            let failed = Finding::fail(
                group,
                dns,
                "krane::check::dns",
                format!("the host of {key} {url} has no address"),
            );
            let failed = failed.because(why).fix(format!(
                "correct {key}, or the DNS of the place where krane runs"
            ));
            let because = "the name has no address";
            return vec![failed, skip(tcp, because), skip(tls, because)];
        }
        Reach::Unconnected { addresses, .. }
        | Reach::Untrusted { addresses, .. }
        | Reach::Open { addresses, .. } => addresses,
    };
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let mut findings = vec![Finding::pass(
        group,
        dns,
        format!("{key} {url} is {}", shown.join(", ")),
    )];
    if let Reach::Unconnected { why, .. } = reach {
        let failed = Finding::fail(
            group,
            tcp,
            "krane::check::tcp",
            format!("nobody can be reached at {key} {url}"),
        );
        findings.push(failed.because(why).fix(format!(
            "start what should listen there, correct the port of {key}, or let network policies and firewalls pass it"
        )));
        findings.push(skip(tls, "there is no connection"));
        return findings;
    }
    findings.push(Finding::pass(
        group,
        tcp,
        format!("{key} takes connections"),
    ));
    match reach {
        Reach::Untrusted { why, .. } => findings.push(untrusted(place, why)),
        Reach::Open {
            certificate: Some(certificate),
            ..
        } => findings.push(trusted(place, certificate, now)),
        Reach::Open {
            certificate: None, ..
        } if place.carries.is_some() => findings.push(
            Finding::warn(
                group,
                tls,
                "krane::check::plaintext",
                format!("{key} {url} is not encrypted"),
            )
            .because(format!(
                "{} travel readable",
                place.carries.unwrap_or_default()
            ))
            .fix("use https://, unless a mesh encrypts the way"),
        ),
        Reach::Open { .. } | Reach::Unresolved(_) | Reach::Unconnected { .. } => {}
    }
    findings
}

/// When krane gives pods their secrets though the desired states do not show whose they are (D50).
pub(super) fn ownership(is_elected: bool, has_scheduler_calls: bool) -> Finding {
    let mut when = vec!["until it has read the whole stream of deployments after a start"];
    if is_elected {
        when.push("on a standby (lease.enabled)");
    }
    if has_scheduler_calls {
        when.push(
            "for workloads of the Scheduler API from before a restart (scheduler.token), until the \
             next call for them",
        );
    }
    Finding::warn(
        Group::Vault,
        "vault.unproved",
        "krane::check::unproved_secrets",
        "not every pod that asks for secrets can be compared with the desired state",
    )
    .because(format!(
        "{}, krane relies on labels and owners, which anyone can forge who may create ReplicaSets or \
         pods in some namespace",
        when.join("; ")
    ))
    .fix(
        "let only trusted users and controllers create ReplicaSets and pods; alert on \
         krane_secrets_unproved_total",
    )
}

fn untrusted(place: Place<'_>, why: &TlsProblem) -> Finding {
    let Place { key, url, .. } = place;
    let authorities = match place.ca_key {
        Some(ca) => format!("set {ca} to the authority that signed it"),
        None => "install the authority that signed it in the image".to_owned(),
    };
    let (why, fix) = match why {
        TlsProblem::UnknownIssuer => (
            "its certificate is signed by an authority that is not trusted".to_owned(),
            authorities,
        ),
        TlsProblem::WrongName => (
            "its certificate is for another name".to_owned(),
            format!("name the host in {key} as the certificate does, or renew the certificate"),
        ),
        TlsProblem::Expired => (
            "its certificate has expired".to_owned(),
            "renew the certificate; if it is new, set this machine's clock".to_owned(),
        ),
        TlsProblem::NotYetValid => (
            "its certificate is not valid yet".to_owned(),
            "set the clocks of this machine and of the one that signed it".to_owned(),
        ),
        TlsProblem::NoHttp2 => (
            "it does not offer HTTP/2 (ALPN h2), which gRPC needs".to_owned(),
            "let every proxy on the way pass HTTP/2".to_owned(),
        ),
        TlsProblem::Other(why) => (
            why.clone(),
            format!("check what listens at {key}, and whether it speaks TLS"),
        ),
    };
    Finding::fail(
        Group::Network,
        place.checks[2],
        "krane::check::tls",
        format!("TLS with {key} {url} fails"),
    )
    .because(why)
    .fix(fix)
}

fn trusted(place: Place<'_>, certificate: &Certificate, now: i64) -> Finding {
    let key = place.key;
    let Some(left) = certificate.not_after.map(|end| end - now) else {
        return Finding::pass(
            Group::Network,
            place.checks[2],
            format!("the certificate of {key} is trusted"),
        );
    };
    let days = left / (24 * 60 * 60);
    if left < SOON {
        return Finding::warn(
            Group::Network,
            place.checks[2],
            "krane::check::certificate_expiry",
            format!("the certificate of {key} ends in {days} days"),
        )
        .because("after that krane refuses the connection")
        .fix("renew it");
    }
    Finding::pass(
        Group::Network,
        place.checks[2],
        format!("the certificate of {key} is trusted for {days} more days"),
    )
}

/// Whether the control plane takes the token.
pub(super) fn handshake(handshake: &Handshake) -> Finding {
    let (group, check) = (Group::ControlPlane, "control_plane.handshake");
    let Err(failure) = &handshake.accepted else {
        return Finding::pass(
            group,
            check,
            "the control plane answers and takes the token",
        );
    };
    let RpcFailure { code, message, .. } = failure;
    match *code {
        "unauthenticated" | "permission_denied" => Finding::fail(
            group,
            check,
            "krane::check::token",
            format!("the control plane refuses the token ({code})"),
        )
        .because(message)
        .fix("put the token of this region into control.token_file (chart: controlPlane.existingSecret)"),
        "unimplemented" => Finding::fail(
            group,
            check,
            "krane::check::protocol",
            "control.url answers, but is no control plane that this krane understands",
        )
        .because(message)
        .fix("correct host and path of control.url, or run a krane that fits the control plane"),
        _ if message.contains("http2 error") => Finding::fail(
            group,
            check,
            "krane::check::protocol",
            "what answers at control.url speaks no gRPC (HTTP/2)",
        )
        .because(message)
        .fix("correct host and port of control.url: another program listens there, or a proxy that speaks HTTP/1 only"),
        _ => Finding::fail(
            group,
            check,
            "krane::check::control_plane",
            format!("the control plane gave no usable answer ({code})"),
        )
        .because(message)
        .fix("look at the control plane and at proxies in between"),
    }
}

/// Unix seconds of a header `Date`.
pub(super) fn moment(date: &str) -> Option<i64> {
    let parsed = rfc2822::DateTimeParser::new().parse_timestamp(date);
    parsed.ok().map(jiff::Timestamp::as_second)
}

/// How far another machine's clock is from ours; `between` are our seconds before and after it
/// was asked.
pub(super) fn clock(
    check: &'static str,
    whose: &str,
    date: Option<i64>,
    between: (i64, i64),
) -> Finding {
    let Some(date) = date else {
        return Finding::skip(Group::Time, check, format!("{whose} sent no date"));
    };
    let (before, after) = between;
    // A date is cut to the second, so that one within the call proves nothing.
    let skew = if date + 1 < before {
        date + 1 - before
    } else if date > after {
        date - after
    } else {
        0
    };
    let (apart, way) = (skew.abs(), if skew < 0 { "ahead of" } else { "behind" });
    let message = format!("this machine's clock is {apart} s {way} that of {whose}");
    let fix = "synchronize the clocks of both machines (NTP)";
    let finding = if apart > SKEW_TO_FAIL {
        Finding::fail(Group::Time, check, "krane::check::clock", message)
            .because("tokens and certificates are refused, and a Lease may have two holders")
    } else if apart > SKEW_TO_KNOW {
        Finding::warn(Group::Time, check, "krane::check::clock", message)
            .because("times in logs and on the page do not match")
    } else {
        return Finding::pass(
            Group::Time,
            check,
            format!("the clock agrees with that of {whose}"),
        );
    };
    finding.fix(fix)
}

#[cfg(test)]
mod tests;
