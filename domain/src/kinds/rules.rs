//! Settings that change what krane decides.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// What an operator may choose about rendering, validation and reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The region of this cluster, for what runs in it.
    pub region: Region,
    /// The namespace krane itself runs in: no workload may go there (D15).
    pub namespace_of_krane: Arc<str>,
    /// Requests are the limits divided by this; 0 counts as 1.
    pub request_divisor: u64,
    /// The most replicas one workload may ask for (`deployments.max_replicas`).
    pub max_replicas: u32,
    /// Credentials of the registry, when one is configured (D33).
    pub pull_secret: Option<PullSecret>,
    /// Whether workloads wait for the Cilium CRD (D18).
    pub is_cilium_required: bool,
    /// Audience of the token that pods get, when one is configured (D30).
    pub secrets_audience: Option<Arc<str>>,
    /// Whether unready pods of an older template are replaced one by one (D16).
    pub replaces_outdated_pods: bool,
    /// Storage class of ephemeral volumes.
    pub storage_class_name: Arc<str>,
    /// Form of the addresses in reports (D25).
    pub report_address: ReportAddress,
    /// Where sentinels answer probes (D21).
    pub probe_paths: ProbePaths,
}

impl Rules {
    /// The built-in defaults, for a krane that runs in `namespace_of_krane`.
    pub fn new(namespace_of_krane: impl Into<Arc<str>>) -> Self {
        Self {
            region: Region::default(),
            namespace_of_krane: namespace_of_krane.into(),
            request_divisor: 4,
            max_replicas: 1000,
            pull_secret: None,
            is_cilium_required: true,
            secrets_audience: None,
            replaces_outdated_pods: false,
            storage_class_name: "ebs-csi-gp3".into(),
            report_address: ReportAddress::Dns,
            probe_paths: ProbePaths::Legacy,
        }
    }
}

impl Rules {
    /// The same rules after the password of the registry changed.
    #[must_use]
    pub fn with_password(&self, password: Password) -> Self {
        let mut rules = self.clone();
        if let Some(secret) = &mut rules.pull_secret {
            secret.password = password;
        }
        rules
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new("krane")
    }
}

/// Credentials of the registry that customer images come from.
#[derive(Clone, PartialEq, Eq)]
pub struct PullSecret {
    /// Registry URL, the key of its credentials.
    pub url: String,
    /// User name.
    pub username: String,
    /// The password as it was when this was made.
    pub password: Password,
}

impl fmt::Debug for PullSecret {
    /// Leaves out user name and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSecret")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A password: wiped when it is dropped, and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// This text.
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The text, for the one object that holds it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// How an instance is addressed in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportAddress {
    /// `<ip dashed>.<namespace>.pod.cluster.local:<port>`
    #[default]
    Dns,
    /// `<ip>:<port>`, IPv6 in brackets
    Ip,
}

/// Where a cluster is, in the words of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Who runs it: `aws`, `gcp`, `local`, …
    pub platform: Arc<str>,
    /// Its name there: `us-east-1`, …
    pub name: Arc<str>,
}

impl Default for Region {
    fn default() -> Self {
        Self {
            platform: "local".into(),
            name: "dev".into(),
        }
    }
}

/// Where sentinels answer probes: their images changed it (D21).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbePaths {
    /// One path for both.
    #[default]
    Legacy,
    /// One for each.
    Split,
}
