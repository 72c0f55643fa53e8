//! Settings turned into the adapters of the actors' ports.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use krane_actors::chance::Chance;
use krane_actors::lease::{Election, Leadership};
use krane_actors::status::StatusBoard;
use krane_control_plane::wire::Wire;
use krane_control_plane::{CallObserver, ControlPlaneAccess, GrpcControlPlane, Timing};
use krane_domain::ids::Controller;
use krane_domain::kinds::{Password, ProbePaths, PullSecret, Region, ReportAddress, Rules};
use krane_kubernetes::{ApiObserver, CallLimits, RequestDone, Verb};
use krane_ports::{Clock, ControlPlane, Leases, PasswordSource};
use krane_proto::USER_AGENT;
use krane_settings::{self as settings, SecretSource, Settings};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};
use secrecy::ExposeSecret;

use super::RunError;

/// The clock on the wall.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl SystemClock {
    /// Since the Unix epoch; nothing before it.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the adapter of the clock port"
    )]
    pub fn unix_time() -> Duration {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.unwrap_or_default()
    }
}

impl Clock for SystemClock {
    fn unix_seconds(&self) -> u64 {
        Self::unix_time().as_secs()
    }
}

/// Where the jitter of this process begins.
#[expect(
    clippy::disallowed_methods,
    reason = "each process has jitter of its own"
)]
pub(super) fn seed() -> u64 {
    fastrand::u64(..)
}

/// The right to write of this process. In an election it has a name that no other process has:
/// not even the one that is started after it in the same pod.
pub(super) fn leadership(settings: &Settings, board: &StatusBoard) -> Leadership {
    if !settings.lease.enabled {
        return Leadership::default();
    }
    let (instance, number) = (&settings.instance_id, seed());
    Leadership::elected(format!("{instance}_{number:016x}").into(), board.clone())
}

/// How it is decided who writes; nothing when this process always does.
pub(super) fn election(
    settings: &Settings,
    leases: Arc<dyn Leases>,
    seed: u64,
) -> Option<Election> {
    let lease = &settings.lease;
    lease.enabled.then(|| Election {
        leases,
        timing: krane_domain::lease::Timing {
            duration: lease.duration,
            renew: lease.renew,
            retry: lease.retry,
        },
        chance: Chance::new(seed),
    })
}

/// What every request to Kubernetes says of its sender.
pub(super) fn user_agent() -> HeaderValue {
    HeaderValue::from_static(USER_AGENT)
}

/// The settings that change what is decided.
pub(super) fn rules(settings: &Settings, namespace: &str) -> Rules {
    Rules {
        region: Region {
            platform: settings.region.platform.as_str().into(),
            name: settings.region.name.as_str().into(),
        },
        namespace_of_krane: namespace.into(),
        request_divisor: settings.deployments.request_divisor.into(),
        max_replicas: settings.deployments.max_replicas.unsigned_abs(),
        pull_secret: settings.registry.as_ref().map(|registry| PullSecret {
            url: registry.url.clone(),
            username: registry.username.clone(),
            password: password(&registry.password),
        }),
        is_cilium_required: settings.cilium.required,
        storage_class_name: settings.storage_class_name.as_str().into(),
        secrets_audience: settings.secrets.audience.as_deref().map(Arc::from),
        replaces_outdated_pods: settings.deployments.replace_outdated_pods
            == settings::ReplaceOutdatedPods::Unready,
        report_address: match settings.report.address {
            settings::ReportAddress::Dns => ReportAddress::Dns,
            settings::ReportAddress::Ip => ReportAddress::Ip,
        },
        probe_paths: match settings.sentinel.probe_paths {
            settings::ProbePaths::Legacy => ProbePaths::Legacy,
            settings::ProbePaths::Split => ProbePaths::Split,
        },
    }
}

/// The password of the registry in force (D42). No lane waits for a disk.
pub(super) fn registry_password(settings: &Settings) -> Option<PasswordSource> {
    let source = settings.registry.as_ref()?.password.clone();
    Some(Arc::new(move || password(&source)))
}

fn password(source: &SecretSource) -> Password {
    Password::new(source.last_good().expose_secret())
}

/// The mapping to the wire of one controller.
fn wire(settings: &Settings, controller: Controller, rules: &Rules) -> Wire {
    let region = &settings.region;
    Wire::new(
        &region.platform,
        &region.name,
        controller,
        Arc::new(rules.clone()),
    )
}

/// The control plane over a connection of its own.
pub(super) fn control_plane(
    settings: &Settings,
    access: &ControlPlaneAccess,
    controller: Controller,
    rules: &Rules,
) -> Result<Arc<dyn ControlPlane>, RunError> {
    let wire = wire(settings, controller, rules);
    let port = GrpcControlPlane::new(access, wire).map_err(RunError::ControlPlane)?;
    Ok(Arc::new(port))
}

/// How the control plane is reached.
pub(super) fn control_plane_access(
    settings: &Settings,
    observers: &Observers,
) -> ControlPlaneAccess {
    let token = settings.control.token.clone();
    ControlPlaneAccess {
        url: settings.control.url.as_str().to_owned(),
        ca_file: settings.control.ca_file.clone(),
        token: Arc::new(move || token.current()),
        timing: Timing::default(),
        observer: observers.calls(),
    }
}

/// The limits on one controller's requests to Kubernetes.
pub(super) fn call_limits(settings: &Settings) -> CallLimits {
    let (qps, burst) = settings.k8s.rate_limit.map_or((0.0, 0), |limit| {
        (f64::from(limit.per_second.get()), limit.burst.get())
    });
    CallLimits {
        max_in_flight: settings.k8s.max_in_flight,
        qps,
        burst,
    }
}

/// Counts requests to the API server and calls to the control plane.
#[derive(Clone)]
pub(super) struct Observers {
    requests: IntCounterVec,
    seconds: HistogramVec,
    calls: IntCounterVec,
}

impl Observers {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                "rest_client_requests_total",
                "Requests to the Kubernetes API server.",
            ),
            &["code", "method", "host"],
        )?;
        let buckets = vec![
            0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
        ];
        let seconds = HistogramVec::new(
            HistogramOpts::new(
                "rest_client_request_duration_seconds",
                "Duration of requests to the Kubernetes API server; for a watch to its headers.",
            )
            .buckets(buckets),
            &["verb", "host"],
        )?;
        let calls = IntCounterVec::new(
            Opts::new(
                "krane_control_plane_requests_total",
                "Calls to the control plane, by gRPC code.",
            ),
            &["method", "code"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        registry.register(Box::new(calls.clone()))?;
        // Every region says that it is alive, so that this much is always there.
        calls.with_label_values(&["Heartbeat", "ok"]);
        Ok(Self {
            requests,
            seconds,
            calls,
        })
    }

    /// Makes the series that every krane has, so that the first request is seen as an increase.
    pub(super) fn expect(&self, host: &str) {
        for method in ["GET", "PATCH"] {
            self.requests.with_label_values(&["200", method, host]);
        }
        for verb in [Verb::Apply, Verb::Get, Verb::List, Verb::Watch] {
            self.seconds.with_label_values(&[verb.name(), host]);
        }
    }

    pub(super) fn api(&self) -> Arc<dyn ApiObserver> {
        Arc::new(self.clone())
    }

    pub(super) fn calls(&self) -> Arc<dyn CallObserver> {
        Arc::new(self.clone())
    }
}

impl ApiObserver for Observers {
    fn request(&self, done: &RequestDone<'_>) {
        let verb = done.verb.name();
        self.requests
            .with_label_values(&[done.code, done.verb.method(), done.host])
            .inc();
        self.seconds
            .with_label_values(&[verb, done.host])
            .observe(done.seconds);
    }
}

impl CallObserver for Observers {
    fn call(&self, method: &'static str, code: &'static str) {
        self.calls.with_label_values(&[method, code]).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{Registry, TextEncoder};

    use super::{CallObserver as _, Observers};
    use krane_kubernetes::{ApiObserver as _, RequestDone, Verb};

    const HOST: &str = "10.0.0.1:443";
    const VERBS: [Verb; 9] = [
        Verb::Apply,
        Verb::Create,
        Verb::Patch,
        Verb::Delete,
        Verb::Get,
        Verb::Metadata,
        Verb::List,
        Verb::ListMetadata,
        Verb::Watch,
    ];

    fn series(registry: &Registry) -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry.gather());
        let text = text.expect("encodes");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
        names.collect()
    }

    /// unkeyed/unkey e891de1317, PR #5683 (A61): what requests are about is in no label.
    #[test]
    fn series_of_requests_are_as_many_as_verbs_and_codes() {
        let registry = Registry::new();
        let observers = Observers::register(&registry).expect("registers");
        observers.expect(HOST);
        let request = |resource, code| {
            for verb in VERBS {
                observers.request(&RequestDone {
                    verb,
                    resource,
                    host: HOST,
                    code,
                    seconds: 0.1,
                });
            }
        };
        let all = || {
            for resource in ["pods", "replicasets", "leases"] {
                for code in ["200", "404", "<error>"] {
                    request(resource, code);
                }
            }
            observers.call("Heartbeat", "unavailable");
        };
        let of = |family: &str| {
            let all = series(&registry).into_iter();
            all.filter(|name| name.starts_with(family)).count()
        };
        assert_eq!(of("rest_client_requests_total"), 2, "before the first one");
        assert_eq!(of("krane_control_plane_requests_total"), 1);
        all();
        let once = series(&registry);
        // Four methods and three codes; the names of verbs fold two of them.
        assert_eq!(of("rest_client_requests_total"), 12);
        assert_eq!(of("rest_client_request_duration_seconds_count"), 8);
        assert_eq!(of("krane_control_plane_requests_total"), 2);
        all();
        assert_eq!(series(&registry), once);
        let is_of_the_host = |name: &&String| name.starts_with("rest_client");
        let host = format!("host=\"{HOST}\"");
        assert!(
            once.iter()
                .filter(is_of_the_host)
                .all(|it| it.contains(&host))
        );
    }
}
