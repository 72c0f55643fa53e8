//! `krane check`: whether krane would run here, and if not, why. Changes nothing.
//!
//! Facts are looked for all at once, each within its own time; what they mean is decided in `judge`,
//! `cluster` and `rights`, without a network.

mod cluster;
pub mod findings;
mod judge;
mod ports;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use cluster::Wanted;
use findings::{Finding, Group};
use http::HeaderValue;
use judge::Place;
use krane_control_plane::reach::{HostTls, Reach, reach};
use krane_control_plane::wire::Wire;
use krane_control_plane::{ControlPlaneAccess, GrpcControlPlane, Timing, host_tls};
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::words::chain;
use krane_kubernetes::{KubeAccess, KubeConnection};
use krane_ports::Clock as _;
use krane_proto::USER_AGENT;
use krane_settings::{Settings, Url, Vault};
use krane_vault::{RemoteTiming, RemoteVault};
use tokio::time::timeout;

use crate::run::SystemClock;

/// For each answer. Three of them follow each other at most.
const STEP: Duration = Duration::from_millis(4500);
/// For a name, a connection, TLS: each of the three.
const WAY: Duration = Duration::from_secs(3);
/// For everything about one peer.
const LIMIT: Duration = Duration::from_secs(14);

/// Looks at everything that these settings need. The parts know nothing of each other, so that one
/// that hangs leaves the others as they are.
pub async fn look(settings: &Settings) -> Vec<Finding> {
    let (control, kubernetes, vault, ports) = tokio::join!(
        within(Group::ControlPlane, Box::pin(control_plane(settings))),
        within(Group::KubernetesApi, Box::pin(kubernetes(settings))),
        within(Group::Vault, Box::pin(vault(settings))),
        ports::look(settings),
    );
    [control, kubernetes, vault, ports].concat()
}

async fn within(group: Group, part: impl Future<Output = Vec<Finding>>) -> Vec<Finding> {
    let part = timeout(LIMIT, part).await;
    part.unwrap_or_else(|_| {
        let message = format!("not everything could be looked at within {LIMIT:?}");
        let mut late = Finding::fail(group, "deadline", "krane::check::deadline", message);
        late.is_unknown = true;
        vec![late.fix("try again; if it stays so, look at what answers slowly")]
    })
}

fn now() -> i64 {
    i64::try_from(SystemClock.unix_seconds()).unwrap_or(i64::MAX)
}

async fn control_plane(settings: &Settings) -> Vec<Finding> {
    let control = &settings.control;
    let (group, check, clock) = (
        Group::ControlPlane,
        "control_plane.handshake",
        "time.control_plane",
    );
    let skip = |mut findings: Vec<Finding>, because: &str| {
        findings.push(Finding::skip(group, check, because));
        findings.push(Finding::skip(Group::Time, clock, because));
        findings
    };
    let place = judge::control(control.url.as_str());
    let tls = match host_tls(control.url.as_str(), control.ca_file.as_deref()) {
        Ok(tls) => tls,
        Err(error) => {
            let failed = Finding::fail(
                Group::Network,
                "control_plane.tls",
                "krane::check::tls",
                error.to_string(),
            );
            let failed = failed.fix("correct control.url or control.ca_file");
            return skip(vec![failed], "TLS cannot be set up");
        }
    };
    let reached = reach(control.url.uri(), tls, WAY).await;
    let mut findings = judge::way(place, &reached, now());
    if !matches!(reached, Reach::Open { .. }) {
        return skip(findings, "the control plane was not reached");
    }
    let token = control.token.clone();
    let access = ControlPlaneAccess {
        url: control.url.as_str().to_owned(),
        ca_file: control.ca_file.clone(),
        token: Arc::new(move || token.current()),
        timing: Timing {
            connect: STEP,
            unary: STEP,
            ..Timing::default()
        },
        observer: Arc::new(()),
    };
    let region = &settings.region;
    let wire = Wire::new(
        &region.platform,
        &region.name,
        Controller::Deployments,
        Arc::new(Rules::default()),
    );
    let peer = match GrpcControlPlane::new(&access, wire) {
        Ok(peer) => peer,
        Err(error) => return skip(findings, &error.to_string()),
    };
    let before = now();
    let Ok(handshake) = timeout(STEP, peer.shake_hands()).await else {
        let failed = Finding::fail(
            group,
            check,
            "krane::check::control_plane",
            format!("the control plane gave no answer within {STEP:?}"),
        );
        findings.push(failed.fix("look at the control plane and at proxies in between"));
        return findings;
    };
    let date = handshake.date.as_deref().and_then(judge::moment);
    findings.push(judge::handshake(&handshake));
    let between = (before, now());
    findings.push(judge::clock(clock, "the control plane", date, between));
    findings
}

async fn kubernetes(settings: &Settings) -> Vec<Finding> {
    let (group, check, clock) = (
        Group::KubernetesApi,
        "kubernetes.credentials",
        "time.kubernetes",
    );
    let unusable = |why: String| {
        let failed = Finding::fail(
            group,
            check,
            "krane::check::credentials",
            "there are no usable Kubernetes credentials",
        );
        let failed = failed
            .because(why)
            .fix("run it in krane's pod, or give --kubeconfig and --context");
        let mut findings = vec![failed];
        findings.extend(cluster::nothing("there are no credentials"));
        findings
    };
    let access = match KubeAccess::choose(&settings.kubernetes) {
        Ok(access) => access,
        Err(error) => return unusable(chain(&error)),
    };
    let shown = access.to_string();
    let agent = HeaderValue::from_static(USER_AGENT);
    let opened = timeout(STEP, KubeConnection::open(access, agent, Arc::new(()))).await;
    let connection = match opened {
        Ok(Ok(connection)) => Arc::new(connection),
        Ok(Err(error)) => return unusable(chain(&error)),
        Err(_) => return unusable(format!("reading {shown} took longer than {STEP:?}")),
    };
    let before = now();
    let greeting = cluster::greet(&connection).await;
    let between = (before, now());
    let mut findings = vec![
        Finding::pass(group, check, format!("credentials: {shown}")),
        cluster::judge_greeting(&greeting),
    ];
    if greeting.version.is_err() {
        findings.extend(cluster::nothing("the API server gave no usable answer"));
        return findings;
    }
    let date = greeting.date.as_deref().and_then(judge::moment);
    findings.push(judge::clock(clock, "the API server", date, between));
    let facts = Box::pin(cluster::look(&connection, settings)).await;
    let wanted = Wanted {
        is_cilium_required: settings.cilium.required,
        storage_class: &settings.storage_class_name,
    };
    findings.extend(cluster::judge(&facts, wanted));
    findings
}

async fn vault(settings: &Settings) -> Vec<Finding> {
    let mut findings = Box::pin(vault_itself(settings)).await;
    if settings.vault.is_some() {
        let has_calls = settings.scheduler.token.is_some();
        findings.push(judge::ownership(settings.lease.enabled, has_calls));
    }
    findings
}

async fn vault_itself(settings: &Settings) -> Vec<Finding> {
    let (group, check) = (Group::Vault, "vault");
    match &settings.vault {
        None => vec![Finding::pass(
            group,
            check,
            "no vault is set: the secrets service is off",
        )],
        Some(Vault::Remote { url, token }) => {
            let mut findings = way(judge::vault(url.as_str()), url).await;
            let is_reached = !findings.iter().any(Finding::is_failure);
            if !is_reached {
                findings.push(Finding::skip(group, check, "the vault was not reached"));
                return findings;
            }
            let timing = RemoteTiming {
                connect: STEP,
                call: STEP,
                ..RemoteTiming::default()
            };
            let alive = match RemoteVault::new(url.uri(), token.clone(), timing) {
                Ok(vault) => vault
                    .liveness()
                    .await
                    .map_err(|failure| failure.to_string()),
                Err(error) => Err(chain(&error)),
            };
            findings.push(match alive {
                Ok(()) => Finding::pass(group, check, "the vault says that it is well"),
                Err(why) => Finding::fail(
                    group,
                    check,
                    "krane::check::vault",
                    format!("the vault at {url} is not well"),
                )
                .because(why)
                .fix("look at the vault; pods that start get no secrets meanwhile"),
            });
            findings
        }
        Some(Vault::Embedded { s3, .. }) => {
            let mut findings = way(judge::vault_s3(s3.url.as_str()), &s3.url).await;
            findings.push(Finding::pass(
                group,
                check,
                "the master keys can be read; krane vault verify tries them on every stored key",
            ));
            findings
        }
    }
}

/// The way to a vault, which need not speak HTTP/2.
async fn way(place: Place<'_>, url: &Url) -> Vec<Finding> {
    let tls = match host_tls(url.as_str(), None) {
        Ok(tls) => tls.map(without_http2),
        Err(error) => {
            let failed = Finding::fail(
                Group::Network,
                "vault.tls",
                "krane::check::tls",
                format!("TLS with {} cannot be set up", place.key),
            );
            return vec![failed.because(chain(&error)).fix("correct its address")];
        }
    };
    let reached = reach(url.uri(), tls, WAY).await;
    judge::way(place, &reached, now())
}

fn without_http2((config, server): HostTls) -> HostTls {
    let mut config = (*config).clone();
    config.alpn_protocols.clear();
    (Arc::new(config), server)
}
