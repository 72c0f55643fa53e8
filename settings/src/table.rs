//! Every configuration key, declared once.
//!
//! A new key is one entry here, then `BLESS=1 cargo test -p krane-settings generated`, which writes
//! `config/default.toml`, the table of `docs/configuration.md` and the chart's schema, and the
//! place that uses the value.
//!
//! ```text
//! /// Comment above the section in default.toml.
//! section [path] FORM Name, checked by FUNCTION {
//!     /// Comment above the key: its documentation everywhere. Without one, that of the key above counts.
//!     name: Type = key(Kind::…).default("…");
//!     other: Type = key(Kind::…).example("…").flat("UNKEY_…").flag("--…"), by FUNCTION, with { … };
//! } plus {
//!     /// A field that is no key of this section.
//!     field: Type, by FUNCTION;
//! }
//! ```
//!
//! FORM: `always` is a struct in which every key is read; `optional` a struct that is there when all
//! its keys are; `keys` declares keys of a type that is put together by hand. `Option<Type>` may be
//! left out. `by` reads a field by hand, `with` declares keys that this field swallows, `checked by`
//! compares keys with each other. The functions are in `assemble.rs`.
//! The table has two readers: `keys.rs` makes the list of keys from it, `typed.rs` the structs.

macro_rules! every_key {
    ($reader:ident) => { $reader! {

section [] always Settings, checked by assemble::distinct_ports {
    /// The name of this process, unique among all that run. Default: `ins_` and 8 random characters.
    instance_id: String = key(Kind::Text).example("krane-0")
        .flat("UNKEY_INSTANCE_ID").flag("--instance-id");
    /// The region this agent serves. Required. `us-east-1.aws` and `aws:us-east-1` also name the
    /// platform, when `platform` is not set.
    region: Region = key(Kind::Text).required().example("us-east-1.aws").sample("us-east-1")
        .flat("UNKEY_REGION").flag("--region"),
        by assemble::region, with {
            /// The provider of the region: aws, gcp, local. Required, unless `region` carries it.
            platform = key(Kind::Text).example("aws").flat("UNKEY_PLATFORM").flag("--platform");
        };
    /// Port of the RPC services and of /health/live, /health/ready, /health/startup. 1 to 65535.
    rpc_port: u16 = number(1, 65_535).default("8070").flat("UNKEY_RPC_PORT").flag("--rpc-port");
    /// The storage class of ephemeral volumes.
    storage_class_name: String = key(Kind::Text).default("ebs-csi-gp3");
} plus {
    /// The control plane.
    control: Control;
    /// The image registry; `None` leaves pull secrets out.
    registry: Option<Registry>, by assemble::registry;
    /// Where secrets are decrypted; `None` turns the secrets service off.
    vault: Option<Vault>, by assemble::vault;
    /// The secrets service.
    secrets: Secrets;
    /// The scheduler service.
    scheduler: Scheduler;
    /// The RPC server.
    rpc: Rpc;
    /// How deployments are rendered.
    deployments: Deployments;
    /// Network policies.
    cilium: Cilium;
    /// How sentinels are rendered.
    sentinel: Sentinel;
    /// Status reports.
    report: Report;
    /// The port of the health endpoints alone.
    health: Health;
    /// The pass that asks about every object.
    resync: Resync;
    /// The second watch from the beginning.
    replay: Replay;
    /// Brakes.
    safety: Safety;
    /// Requests to Kubernetes.
    k8s: K8s;
    /// Which of several processes writes.
    lease: Lease;
    /// The page and its API.
    admin: Admin;
    /// Logs, metrics, traces.
    observability: Observability;
    /// How Kubernetes is reached; it follows from flags and the environment, not from a key.
    kubernetes: AccessInputs, by assemble::kubernetes;
}

/// The control plane: the source of desired state and the receiver of reports.
section [control] always Control {
    /// Base address, http:// (h2c) or https://. Required.
    url: Url = key(Kind::Url).required().example("https://control.example.com")
        .flat("UNKEY_CONTROL_PLANE_URL").flag("--control-plane-url");
    /// Bearer token of every request. Required; secret.
    token: SecretSource = key(Kind::Token).required().example("/etc/krane/token")
        .sample("/var/run/secrets/krane/control-token").flat("UNKEY_CONTROL_PLANE_BEARER");
    /// A PEM file with the only authorities to trust. Default: those of the system.
    ca_file: Option<PathBuf> = key(Kind::Path).example("/etc/krane/ca.pem")
        .sample("/etc/krane/control-ca.pem");
    /// Bytes of states that wait to be applied. Only when this is full is a stream no longer read.
    /// 1MiB to 64GiB.
    max_backlog: ByteSize = mebibytes(1, 64 * 1024).default("256MiB");
}

/// The image registry: all three keys or none. With them every namespace gets a pull secret.
section [registry] optional Registry {
    url: String = key(Kind::Text).example("registry.depot.dev")
        .flat("UNKEY_REGISTRY_URL").flag("--registry-url");
    username: String = key(Kind::Text).example("x-token")
        .flat("UNKEY_REGISTRY_USERNAME").flag("--registry-username");
    password: SecretSource = key(Kind::Secret).example("/etc/krane/registry-password")
        .sample("/var/run/secrets/krane/registry-password").note("secret")
        .flat("UNKEY_REGISTRY_PASSWORD");
}

/// Where the secrets of workloads are decrypted. Without a vault the secrets service is off.
/// Either a vault service:
section [vault] keys Vault {
    url: Url = key(Kind::Url).example("http://vault:8060")
        .flat("UNKEY_VAULT_URL").flag("--vault-url");
    token: SecretSource = key(Kind::Token).example("/etc/krane/vault-token")
        .sample("/var/run/secrets/krane/vault-token").note("secret").flat("UNKEY_VAULT_TOKEN");
    /// or decryption in this process, with all of these (ignored when `url` is set). A master key is the
    /// base64 of a serialized KeyEncryptionKey, as the vault itself was given it; docs/secrets.md:
    master_keys: SecretSource = key(Kind::SecretList).example("/etc/krane/master-keys")
        .note("secret, a list; all decrypt. `master_keys_file`: one per line")
        .flat("UNKEY_VAULT_MASTER_KEYS");
}

/// The bucket that holds the data keys; all four keys or none.
section [vault.s3] optional S3 {
    url: Url = key(Kind::Url).example("https://s3.us-east-1.amazonaws.com")
        .flat("UNKEY_VAULT_S3_URL").flag("--vault-s3-url");
    bucket: String = key(Kind::Text).example("krane-vault")
        .flat("UNKEY_VAULT_S3_BUCKET").flag("--vault-s3-bucket");
    access_key_id: String = key(Kind::Text).example("AKIAEXAMPLE")
        .flat("UNKEY_VAULT_S3_ACCESS_KEY_ID").flag("--vault-s3-access-key-id");
    access_key_secret: SecretSource = key(Kind::Secret).example("/etc/krane/s3-secret")
        .sample("/var/run/secrets/krane/s3-secret").note("secret")
        .flat("UNKEY_VAULT_S3_ACCESS_KEY_SECRET");
}

section [secrets] always Secrets {
    /// The audience a pod's token must be made for. Empty: default tokens are accepted. When set,
    /// pods get a projected token of this audience; pods from before are refused (docs/secrets.md).
    audience: Option<String> = key(Kind::Text).default("").example("krane");
}

section [scheduler] always Scheduler {
    /// Bearer token of callers of the scheduler service (docs/scheduler.md): `Authorization: Bearer …` on
    /// `rpc_port`. Empty: every call is refused. Secret.
    token: Option<SecretSource> = key(Kind::Token).default("").example("/etc/krane/scheduler-token")
        .sample("/var/run/secrets/krane/scheduler-token");
}

/// TLS on `rpc_port`: both PEM files or none. Without them it serves HTTP/1.1 and h2c.
section [rpc.tls] optional RpcTls {
    cert: PathBuf = key(Kind::Path).example("/etc/krane/tls.crt");
    key: PathBuf = key(Kind::Path).example("/etc/krane/tls.key");
}

section [rpc] always Rpc {
    /// Whether gRPC reflection is served on `rpc_port`.
    reflection: bool = key(Kind::Boolean).default("false");
} plus {
    /// TLS on the RPC port; `None` serves plain HTTP/1.1 and h2c.
    tls: Option<RpcTls>, by assemble::all_or_none::<RpcTls>;
}

section [deployments] always Deployments {
    /// What happens to pods made from an older template: "never" replaces none, "unready" replaces
    /// those that are not Ready, one per workload at a time.
    replace_outdated_pods: ReplaceOutdatedPods = choice::<ReplaceOutdatedPods>().default("never");
    /// Requests of CPU and memory are the limits divided by this. 1 to 1000.
    request_divisor: u32 = number(1, 1_000).default("4");
    /// A deployment that wants more replicas is refused. 1 to 100000.
    max_replicas: i32 = number(1, 100_000).default("1000");
}

section [cilium] always Cilium {
    /// Whether workloads wait until the cluster has CiliumNetworkPolicy. `false` runs them unisolated.
    required: bool = key(Kind::Boolean).default("true");
}

section [sentinel] always Sentinel {
    /// "legacy": both probes on one path; "split": a path for each.
    probe_paths: ProbePaths = choice::<ProbePaths>().default("legacy");
}

section [report] always Report {
    /// How an instance's address is reported: "dns" (the pod's name) or "ip".
    address: ReportAddress = choice::<ReportAddress>().default("dns");
}

section [health] always Health {
    /// Address of a port for /health/live, /health/ready and /health/startup alone, in plain HTTP/1.1, which nobody can hold up:
    /// for probes. An empty string opens none. They are on `rpc_port` and beside /metrics in any case.
    listen: Option<SocketAddr> = key(Kind::Address).default("").example("[::]:8081");
}

section [resync] always Resync {
    /// Pause between two passes that ask the control plane about every object. 1s to 24h.
    interval: Duration = duration(s(1), h(24)).default("60s");
}

section [replay] always Replay {
    /// Time between two full replays of the streams, before jitter. 1s to 24h; 0 turns them off.
    interval: Option<Duration> = duration(s(1), h(24)).or_zero().default("10m"),
        by assemble::unless_zero;
}

section [safety] always Safety {
    /// "off" stops all writes to the cluster; reports and secrets go on.
    writes: WritesMode = choice::<WritesMode>().default("on");
    /// Whether the pods of a sentinel are rolled only because another version of krane or another agent
    /// rendered their template: one sentinel at a time, the next when all pods of the last are available.
    /// "off" leaves such a template until the control plane wants another. Everything else that was
    /// rendered otherwise is rewritten in any case, last in line and in a quarter of the lanes at most.
    upgrades: UpgradesMode = choice::<UpgradesMode>().default("on");
    /// At most this share of a controller's objects (and never less than 3 of them) is deleted within
    /// an hour because the control plane no longer knows them. Percent, 0 to 100.
    max_deletes_percent: u8 = number(0, 100).default("10");
}

section [k8s] always K8s {
    /// Requests in flight per controller. 1 to 1024.
    max_in_flight: usize = number(1, 1_024).default("32"), with {
        /// Requests per second, and how many may start at once. 0: no limit on the rate.
        qps = number(0, 100_000).default("0");
        burst = number(0, 100_000).default("0");
    };
} plus {
    /// A limit on the rate of requests, `k8s.qps` and `k8s.burst`; `None` sets none.
    rate_limit: Option<RateLimit>, by assemble::rate_limit;
}

/// Which of several processes writes. The others watch and serve, and take over: at once after a clean end, after `duration`
/// at most and a `retry` after a crash.
section [lease] always Lease, checked by assemble::lease_times {
    /// Whether a Lease in krane's own namespace decides. Without it every process writes: run one.
    enabled: bool = key(Kind::Boolean).default("false");
    /// How long a lease lasts without renewal; whole seconds, 3s to 1h.
    duration: Duration = duration(s(3), h(1)).default("15s");
    /// The time in which the holder must succeed to renew, or else stops writing; less than `duration`. It stops a sixth of
    /// `duration` before its end in any case.
    renew: Duration = duration(s(1), h(1)).default("10s");
    /// The time between two attempts, 100ms to 1h; less than `renew`.
    retry: Duration = duration(ms(100), h(1)).default("2s");
}

section [admin] always Admin, checked by assemble::admin_token {
    /// Address of the live page and its API. An address that is not loopback needs `token`.
    /// An empty string serves no page.
    listen: Option<SocketAddr> = key(Kind::Address).default("127.0.0.1:9091").flag("--admin-listen");
    /// Token of the page: programs send it as a bearer token, browsers as the password of any user name. Secret.
    token: Option<SecretSource> = key(Kind::Token).example("/etc/krane/admin-token")
        .sample("/var/run/secrets/krane/admin-token");
    /// Whether `krane resync`, `retry`, `hold` and `writes` may act through the page's API. Needs `token`. Each is told in the
    /// log and on the page, and as a Kubernetes Event unless writes are off. `krane allow-deletes` works without it.
    actions: bool = key(Kind::Boolean).default("false");
}

section [observability] always Observability {} plus {
    /// Metrics.
    metrics: Metrics;
    /// Logs.
    logging: Logging;
    /// Traces; `None` exports none.
    tracing: Option<Tracing>, by assemble::tracing;
}

section [observability.metrics] always Metrics {
    /// Port of /metrics and /health/*. 0: no listener.
    prometheus_port: Option<NonZeroU16> = number(0, 65_535).default("0").example("9090")
        .flat("UNKEY_PROMETHEUS_PORT").flag("--prometheus-port"),
        by assemble::port_unless_zero;
}

section [observability.logging] always Logging {
    /// "error", "warn", "info", "debug" or "trace". RUST_LOG replaces it.
    level: LogLevel = choice::<LogLevel>().default("info").flag("--log-level");
    /// "auto" (pretty on a terminal, JSON elsewhere), "json" or "pretty".
    format: LogFormat = choice::<LogFormat>().default("auto").example("json").flag("--log-format");
    /// The share of lines about successful operations that is written, 0 to 1. Failures always are.
    sample_rate: f64 = key(Kind::Fraction).default("1.0")
        .flat("UNKEY_LOG_SAMPLE_RATE").flag("--log-sample-rate");
    /// A success that took at least this long is always written. 1ms to 1h; 0: all of them are.
    slow_threshold: Duration = duration(ms(1), h(1)).or_zero().default("1s")
        .flat("UNKEY_LOG_SLOW_THRESHOLD").flag("--log-slow-threshold");
} plus {
    /// `RUST_LOG`, which replaces `level` when it is set.
    directives: Option<String>, by assemble::directives;
}

/// Traces over OTLP gRPC. The section switches them on; so does UNKEY_OTEL_ENABLED=true.
section [observability.tracing] optional Tracing {
    /// The collector. Default: OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4317.
    endpoint: Url = key(Kind::Url).example("http://otel-collector:4317");
    /// The share of traces that is exported, 0 to 1.
    sample_rate: f64 = key(Kind::Fraction).example("0.25").flat("UNKEY_OTEL_TRACE_SAMPLING_RATE");
}

    } };
}

/// The dotted path of a section, or of a name in it.
macro_rules! dotted {
    ([$first:ident $(. $rest:ident)*]) => { concat!(stringify!($first) $(, ".", stringify!($rest))*) };
    ([]) => { "" };
    ([] $name:ident) => { stringify!($name) };
    ([$($section:ident).+] $name:ident) => { concat!($(stringify!($section), ".",)+ stringify!($name)) };
}

pub(super) use {dotted, every_key};
