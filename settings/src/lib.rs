//! Everything an operator can set: read from all layers, checked as a whole, and typed.
//!
//! Layers from the lowest to the highest (D35): the built-in `config/default.toml`, the files given
//! with `--config`, the flat `UNKEY_*` variables of the original agent, `KRANE__SECTION__KEY`,
//! flags. This is the only module that reads the environment.

mod assemble;
mod effective;
mod files;
mod flat;
mod keys;
mod kind;
mod layer;
mod nearest;
mod problem;
mod raw;
mod reader;
pub mod reference;
mod secret;
mod substitute;
mod tree;
mod types;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

pub use effective::{Effective, EffectiveValue};
pub use files::{SecretFiles, UnusableFile};
pub use flat::Misspelt;
pub use keys::{KEYS, Key};
pub use kind::Kind;
pub use layer::{DEFAULT_TOML, FlagValue};
pub use nearest::nearest;
pub use problem::{InvalidSettings, Problem, ProblemKind};
pub use raw::Origin;
pub use secret::{SecretError, SecretSource};
pub use types::{
    ByteSize, LogFormat, LogLevel, ProbePaths, Region, ReplaceOutdatedPods, ReportAddress,
    UpgradesMode, Url, WritesMode,
};

use layer::Layers;
use reader::Reader;

/// What settings are made from.
#[derive(Debug, Default, Clone)]
pub struct LoadInput {
    /// The files given with `--config`, in that order; later ones win.
    pub files: Vec<PathBuf>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// What flags set, in the order of the command line; later ones win.
    pub flags: Vec<FlagValue>,
    /// The file given with `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The context given with `--context`.
    pub context: Option<String>,
}

impl LoadInput {
    /// An input with the environment of this process. What is not UTF-8 in it is replaced by
    /// U+FFFD, which the checks refuse where it matters.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn from_process() -> Self {
        let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
        let env = std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        Self {
            env,
            ..Self::default()
        }
    }
}

/// The checked configuration of this process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this process, unique among all that run.
    pub instance_id: String,
    /// The region this agent serves.
    pub region: Region,
    /// The port of the RPC and health server.
    pub rpc_port: u16,
    /// The storage class of ephemeral volumes.
    pub storage_class_name: String,
    /// The control plane.
    pub control: Control,
    /// The image registry; `None` leaves pull secrets out.
    pub registry: Option<Registry>,
    /// Where secrets are decrypted; `None` turns the secrets service off.
    pub vault: Option<Vault>,
    /// The secrets service.
    pub secrets: Secrets,
    /// The scheduler service.
    pub scheduler: Scheduler,
    /// The RPC server.
    pub rpc: Rpc,
    /// How deployments are rendered.
    pub deployments: Deployments,
    /// Network policies.
    pub cilium: Cilium,
    /// How sentinels are rendered.
    pub sentinel: Sentinel,
    /// Status reports.
    pub report: Report,
    /// The port of the health endpoints alone.
    pub health: Health,
    /// The pass that asks about every object.
    pub resync: Resync,
    /// The second watch from the beginning.
    pub replay: Replay,
    /// Brakes.
    pub safety: Safety,
    /// Requests to Kubernetes.
    pub k8s: K8s,
    /// Which of several processes writes.
    pub lease: Lease,
    /// The page and its API.
    pub admin: Admin,
    /// Logs, metrics, traces.
    pub observability: Observability,
    /// How Kubernetes is reached; it follows from flags and the environment, not from a key.
    pub kubernetes: AccessInputs,
}

/// `control.*`
#[derive(Debug, Clone)]
pub struct Control {
    /// The base address; its path is kept.
    pub url: Url,
    /// The bearer token of every request.
    pub token: SecretSource,
    /// A PEM file with the only authorities to trust; `None` trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// The bytes of unapplied states at which a stream is no longer read.
    pub max_backlog: ByteSize,
}

/// `registry.*`
#[derive(Debug, Clone)]
pub struct Registry {
    /// The registry, with or without a scheme: `registry.depot.dev`.
    pub url: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: SecretSource,
}

/// `vault.*`
#[derive(Debug, Clone)]
pub enum Vault {
    /// A vault service.
    Remote {
        /// Its base address.
        url: Url,
        /// Its bearer token; `None` sends none.
        token: Option<SecretSource>,
    },
    /// Decryption in this process, with keys in a bucket.
    Embedded {
        /// The master keys, [`SecretSource::current_list`]; every one decrypts.
        master_keys: SecretSource,
        /// The bucket with the data keys.
        s3: S3,
    },
}

/// `vault.s3.*`
#[derive(Debug, Clone)]
pub struct S3 {
    /// The endpoint.
    pub url: Url,
    /// The bucket.
    pub bucket: String,
    /// The access key's id.
    pub access_key_id: String,
    /// The access key's secret.
    pub access_key_secret: SecretSource,
}

/// `secrets.*`
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The audience a pod's token must have; `None` accepts default tokens.
    pub audience: Option<String>,
}

/// `scheduler.*`
#[derive(Debug, Clone)]
pub struct Scheduler {
    /// The bearer token of callers; `None` refuses every call.
    pub token: Option<SecretSource>,
}

/// `rpc.*`
#[derive(Debug, Clone)]
pub struct Rpc {
    /// TLS on the RPC port; `None` serves plain HTTP/1.1 and h2c.
    pub tls: Option<RpcTls>,
    /// Whether gRPC reflection is served.
    pub reflection: bool,
}

/// `rpc.tls.*`
#[derive(Debug, Clone)]
pub struct RpcTls {
    /// A PEM file with the certificate chain.
    pub cert: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
}

/// `deployments.*`
#[derive(Debug, Clone)]
pub struct Deployments {
    /// What happens to pods made from an older template.
    pub replace_outdated_pods: ReplaceOutdatedPods,
    /// Requests are the limits divided by this.
    pub request_divisor: u32,
    /// More replicas than this are refused.
    pub max_replicas: i32,
}

/// `cilium.*`
#[derive(Debug, Clone)]
pub struct Cilium {
    /// Whether workloads wait for the isolation policy.
    pub required: bool,
}

/// `sentinel.*`
#[derive(Debug, Clone)]
pub struct Sentinel {
    /// The health paths.
    pub probe_paths: ProbePaths,
}

/// `report.*`
#[derive(Debug, Clone)]
pub struct Report {
    /// The form of an instance's address.
    pub address: ReportAddress,
}

/// `resync.*`
#[derive(Debug, Clone)]
pub struct Resync {
    /// The time between the ends of two passes.
    pub interval: Duration,
}

/// `replay.*`
#[derive(Debug, Clone)]
pub struct Replay {
    /// The time between two replays, before jitter; `None` never replays.
    pub interval: Option<Duration>,
}

/// `safety.*`
#[derive(Debug, Clone)]
pub struct Safety {
    /// Whether anything is written.
    pub writes: WritesMode,
    /// Whether what an earlier krane rendered otherwise is rewritten.
    pub upgrades: UpgradesMode,
    /// The share of objects, in percent, that may vanish on `not_found` within an hour.
    pub max_deletes_percent: u8,
}

/// `k8s.*`
#[derive(Debug, Clone)]
pub struct K8s {
    /// Requests in flight per controller.
    pub max_in_flight: usize,
    /// A limit on the rate of requests; `None` sets none.
    pub rate_limit: Option<RateLimit>,
}

/// `k8s.qps` and `k8s.burst`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second.
    pub per_second: NonZeroU32,
    /// Requests that may start at once; the rate when `k8s.burst` is 0.
    pub burst: NonZeroU32,
}

/// `lease.*`
#[derive(Debug, Clone)]
pub struct Lease {
    /// Whether a Lease decides who writes.
    pub enabled: bool,
    /// How long a lease lasts after its renewal.
    pub duration: Duration,
    /// The time in which the holder must succeed to renew.
    pub renew: Duration,
    /// The time between two attempts.
    pub retry: Duration,
}

/// `health.*`
#[derive(Debug, Clone)]
pub struct Health {
    /// The address of the port of the health endpoints alone; `None` opens none.
    pub listen: Option<SocketAddr>,
}

/// `admin.*`
#[derive(Debug, Clone)]
pub struct Admin {
    /// The address of the page; `None` serves none.
    pub listen: Option<SocketAddr>,
    /// The bearer token of the page; always set when `listen` is no loopback address.
    pub token: Option<SecretSource>,
    /// Whether the page offers actions.
    pub actions: bool,
}

/// `observability.*`
#[derive(Debug, Clone)]
pub struct Observability {
    /// Metrics.
    pub metrics: Metrics,
    /// Logs.
    pub logging: Logging,
    /// Traces; `None` exports none.
    pub tracing: Option<Tracing>,
}

/// `observability.metrics.*`
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The port of `/metrics`; `None` opens no listener.
    pub prometheus_port: Option<NonZeroU16>,
}

/// `observability.logging.*`
#[derive(Debug, Clone)]
pub struct Logging {
    /// The least important line that is written.
    pub level: LogLevel,
    /// How lines look.
    pub format: LogFormat,
    /// The share of success lines that is written, from 0 to 1.
    pub sample_rate: f64,
    /// A success that took at least this long is always written.
    pub slow_threshold: Duration,
    /// `RUST_LOG`, which replaces `level` when it is set.
    pub directives: Option<String>,
}

/// `observability.tracing.*`
#[derive(Debug, Clone)]
pub struct Tracing {
    /// The OTLP gRPC collector.
    pub endpoint: Url,
    /// The share of traces that is exported, from 0 to 1.
    pub sample_rate: f64,
}

/// What the choice of the credentials depends on, as the environment and flags tell it (D39).
#[derive(Clone, Debug, Default)]
pub struct AccessInputs {
    /// `KUBERNETES_SERVICE_HOST`
    pub service_host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`
    pub service_port: Option<String>,
    /// `KUBECONFIG`, a list of files in the form of `PATH`
    pub kubeconfig_list: Option<std::ffi::OsString>,
    /// The user's home folder
    pub home: Option<PathBuf>,
    /// `--kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--context`
    pub context: Option<String>,
}

/// Settings together with what they were made from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The checked settings.
    pub settings: Settings,
    /// Every key with its value and origin, secrets masked.
    pub effective: Effective,
    /// Variables that look like ours and are not.
    pub misspelt: Vec<Misspelt>,
}

impl Settings {
    /// Reads and checks all layers; every problem is in the error, not only the first.
    pub fn load(input: &LoadInput) -> Result<Self, InvalidSettings> {
        Loaded::load(input).map(|loaded| loaded.settings)
    }
}

impl Loaded {
    /// Like [`Settings::load`], and keeps the origin of every value.
    pub fn load(input: &LoadInput) -> Result<Self, InvalidSettings> {
        let mut layers = Layers::new(&input.env);
        layers.defaults();
        layers.files(&input.files);
        layers.flat_variables();
        layers.variables();
        layers.flags(&input.flags);
        let mut reader = Reader::new(layers.tree, layers.problems, &input.env);
        let settings = assemble::settings(&mut reader, input);
        let (tree, problems) = reader.finish();
        let effective = Effective::of(&tree);
        let problems = problem::without_consequences(problems);
        let misspelt = flat::misspelt(&input.env);
        match settings {
            Ok(settings) if problems.is_empty() => Ok(Self {
                settings,
                effective,
                misspelt,
            }),
            Ok(_) | Err(_) => Err(InvalidSettings {
                effective: effective.without(&problems),
                problems,
                misspelt,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
