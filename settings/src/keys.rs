//! Every configuration key, its accepted values and its other names. There is no second list.

use std::time::Duration;

use super::kind::Kind;
use super::types::{
    ByteSize, LogFormat, LogLevel, ProbePaths, ReplaceOutdatedPods, ReportAddress, UpgradesMode,
    WritesMode,
};

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The TOML path: `control.url`.
    pub path: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// A valid value, for messages.
    pub example: &'static str,
    /// The flat environment variable of the original agent, if it had one.
    pub flat: Option<&'static str>,
    /// The command-line flag, if there is one besides `--set`.
    pub flag: Option<&'static str>,
}

impl Key {
    const fn new(path: &'static str, kind: Kind, example: &'static str) -> Self {
        Self {
            path,
            kind,
            example,
            flat: None,
            flag: None,
        }
    }

    const fn flat(mut self, name: &'static str) -> Self {
        self.flat = Some(name);
        self
    }

    const fn flag(mut self, name: &'static str) -> Self {
        self.flag = Some(name);
        self
    }

    /// The environment variable that sets this key: `KRANE__CONTROL__URL`.
    #[must_use]
    pub(super) fn variable(&self) -> String {
        variable(self.path)
    }
}

/// The environment variable for a TOML path, known or not.
#[must_use]
pub(super) fn variable(path: &str) -> String {
    format!("KRANE__{}", path.to_uppercase().replace('.', "__"))
}

/// Added to the path of a secret, names the file that holds it.
pub(super) const FILE_SUFFIX: &str = "_file";

/// Says in the flat form whether the tracing section is present.
pub(super) const OTEL_ENABLED: &str = "UNKEY_OTEL_ENABLED";

/// The section that [`OTEL_ENABLED`] switches.
pub(super) const TRACING: &str = "observability.tracing";

const PORT: Kind = Kind::Integer {
    min: 1,
    max: 65_535,
};
const PORT_OR_OFF: Kind = Kind::Integer {
    min: 0,
    max: 65_535,
};

const fn number(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const fn seconds(min: u64, max: u64) -> Kind {
    Kind::Duration {
        min: Duration::from_secs(min),
        max: Duration::from_secs(max),
        zero: false,
    }
}

const fn seconds_or_zero(min: u64, max: u64) -> Kind {
    Kind::Duration {
        min: Duration::from_secs(min),
        max: Duration::from_secs(max),
        zero: true,
    }
}

const RETRY: Kind = Kind::Duration {
    min: Duration::from_millis(100),
    max: Duration::from_hours(1),
    zero: false,
};
const DAY: u64 = 24 * 60 * 60;
const BACKLOG: Kind = Kind::Bytes {
    min: ByteSize::from_mebibytes(1),
    max: ByteSize::from_mebibytes(64 * 1024),
};
const ONE_MILLISECOND: Kind = Kind::Duration {
    min: Duration::from_millis(1),
    max: Duration::from_hours(1),
    zero: true,
};

/// All keys in the order of `config/default.toml`.
pub const KEYS: &[Key] = &[
    Key::new("instance_id", Kind::Text, "krane-0")
        .flat("UNKEY_INSTANCE_ID")
        .flag("--instance-id"),
    Key::new("region", Kind::Text, "us-east-1.aws")
        .flat("UNKEY_REGION")
        .flag("--region"),
    Key::new("platform", Kind::Text, "aws")
        .flat("UNKEY_PLATFORM")
        .flag("--platform"),
    Key::new("rpc_port", PORT, "8070")
        .flat("UNKEY_RPC_PORT")
        .flag("--rpc-port"),
    Key::new("storage_class_name", Kind::Text, "ebs-csi-gp3"),
    Key::new("control.url", Kind::Url, "https://control.example.com")
        .flat("UNKEY_CONTROL_PLANE_URL")
        .flag("--control-plane-url"),
    Key::new("control.token", Kind::Token, "/etc/krane/token").flat("UNKEY_CONTROL_PLANE_BEARER"),
    Key::new("control.ca_file", Kind::Path, "/etc/krane/ca.pem"),
    Key::new("control.max_backlog", BACKLOG, "256MiB"),
    Key::new("registry.url", Kind::Text, "registry.depot.dev")
        .flat("UNKEY_REGISTRY_URL")
        .flag("--registry-url"),
    Key::new("registry.username", Kind::Text, "x-token")
        .flat("UNKEY_REGISTRY_USERNAME")
        .flag("--registry-username"),
    Key::new(
        "registry.password",
        Kind::Secret,
        "/etc/krane/registry-password",
    )
    .flat("UNKEY_REGISTRY_PASSWORD"),
    Key::new("vault.url", Kind::Url, "http://vault:8060")
        .flat("UNKEY_VAULT_URL")
        .flag("--vault-url"),
    Key::new("vault.token", Kind::Token, "/etc/krane/vault-token").flat("UNKEY_VAULT_TOKEN"),
    Key::new(
        "vault.master_keys",
        Kind::SecretList,
        "/etc/krane/master-keys",
    )
    .flat("UNKEY_VAULT_MASTER_KEYS"),
    Key::new(
        "vault.s3.url",
        Kind::Url,
        "https://s3.us-east-1.amazonaws.com",
    )
    .flat("UNKEY_VAULT_S3_URL")
    .flag("--vault-s3-url"),
    Key::new("vault.s3.bucket", Kind::Text, "krane-vault")
        .flat("UNKEY_VAULT_S3_BUCKET")
        .flag("--vault-s3-bucket"),
    Key::new("vault.s3.access_key_id", Kind::Text, "AKIAEXAMPLE")
        .flat("UNKEY_VAULT_S3_ACCESS_KEY_ID")
        .flag("--vault-s3-access-key-id"),
    Key::new(
        "vault.s3.access_key_secret",
        Kind::Secret,
        "/etc/krane/s3-secret",
    )
    .flat("UNKEY_VAULT_S3_ACCESS_KEY_SECRET"),
    Key::new("secrets.audience", Kind::Text, "krane"),
    Key::new("scheduler.token", Kind::Token, "/etc/krane/scheduler-token"),
    Key::new("rpc.tls.cert", Kind::Path, "/etc/krane/tls.crt"),
    Key::new("rpc.tls.key", Kind::Path, "/etc/krane/tls.key"),
    Key::new("rpc.reflection", Kind::Boolean, "false"),
    Key::new(
        "deployments.replace_outdated_pods",
        Kind::Choice(ReplaceOutdatedPods::WORDS),
        "never",
    ),
    Key::new("deployments.request_divisor", number(1, 1_000), "4"),
    Key::new("deployments.max_replicas", number(1, 100_000), "1000"),
    Key::new("cilium.required", Kind::Boolean, "true"),
    Key::new(
        "sentinel.probe_paths",
        Kind::Choice(ProbePaths::WORDS),
        "legacy",
    ),
    Key::new("report.address", Kind::Choice(ReportAddress::WORDS), "dns"),
    Key::new("health.listen", Kind::Address, "[::]:8081"),
    Key::new("resync.interval", seconds(1, DAY), "60s"),
    Key::new("replay.interval", seconds_or_zero(1, DAY), "10m"),
    Key::new("safety.writes", Kind::Choice(WritesMode::WORDS), "on"),
    Key::new("safety.upgrades", Kind::Choice(UpgradesMode::WORDS), "on"),
    Key::new("safety.max_deletes_percent", number(0, 100), "10"),
    Key::new("k8s.max_in_flight", number(1, 1_024), "32"),
    Key::new("k8s.qps", number(0, 100_000), "0"),
    Key::new("k8s.burst", number(0, 100_000), "0"),
    Key::new("lease.enabled", Kind::Boolean, "false"),
    Key::new("lease.duration", seconds(3, 60 * 60), "15s"),
    Key::new("lease.renew", seconds(1, 60 * 60), "10s"),
    Key::new("lease.retry", RETRY, "2s"),
    Key::new("admin.listen", Kind::Address, "127.0.0.1:9091").flag("--admin-listen"),
    Key::new("admin.token", Kind::Token, "/etc/krane/admin-token"),
    Key::new("admin.actions", Kind::Boolean, "false"),
    Key::new("observability.metrics.prometheus_port", PORT_OR_OFF, "9090")
        .flat("UNKEY_PROMETHEUS_PORT")
        .flag("--prometheus-port"),
    Key::new(
        "observability.logging.level",
        Kind::Choice(LogLevel::WORDS),
        "info",
    )
    .flag("--log-level"),
    Key::new(
        "observability.logging.format",
        Kind::Choice(LogFormat::WORDS),
        "json",
    )
    .flag("--log-format"),
    Key::new("observability.logging.sample_rate", Kind::Fraction, "1.0")
        .flat("UNKEY_LOG_SAMPLE_RATE")
        .flag("--log-sample-rate"),
    Key::new(
        "observability.logging.slow_threshold",
        ONE_MILLISECOND,
        "1s",
    )
    .flat("UNKEY_LOG_SLOW_THRESHOLD")
    .flag("--log-slow-threshold"),
    Key::new(
        "observability.tracing.endpoint",
        Kind::Url,
        "http://otel-collector:4317",
    ),
    Key::new("observability.tracing.sample_rate", Kind::Fraction, "0.25")
        .flat("UNKEY_OTEL_TRACE_SAMPLING_RATE"),
];

/// What a TOML path means.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// A key's own path.
    Value,
    /// The path of a secret's file.
    SecretFile,
    /// A table that holds keys.
    Section,
    /// Nothing krane knows.
    Unknown,
}

pub(super) fn meaning(path: &str) -> Meaning {
    if find(path).is_some() {
        return Meaning::Value;
    }
    let secret = path
        .strip_suffix(FILE_SUFFIX)
        .and_then(find)
        .filter(|key| key.kind.is_secret());
    if secret.is_some() {
        return Meaning::SecretFile;
    }
    let inside = |key: &Key| {
        key.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    if KEYS.iter().any(inside) {
        Meaning::Section
    } else {
        Meaning::Unknown
    }
}

pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Every path a configuration may hold, `…_file` forms and sections included.
pub(super) fn known_paths() -> Vec<String> {
    let mut paths = Vec::new();
    for key in KEYS {
        paths.push(key.path.to_owned());
        if key.kind.is_secret() {
            paths.push(format!("{}{FILE_SUFFIX}", key.path));
        }
        for (dot, _) in key.path.match_indices('.') {
            paths.push(key.path[..dot].to_owned());
        }
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
