//! How krane reaches the API server (D39): which credentials, from where.

use std::ffi::OsStr;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use kube::Config;
use kube::config::{Kubeconfig, KubeconfigError};

use krane_settings::AccessInputs;

/// Where Kubernetes mounts a pod's own account.
pub const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The credentials to use. Read again from their files whenever a client is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeAccess {
    /// The pod's own account.
    InCluster {
        /// `https://host:port` of the API server.
        server: Uri,
        /// The folder that holds `token`, `ca.crt` and `namespace`.
        account: PathBuf,
    },
    /// Kubeconfig files, merged in this order.
    Kubeconfig {
        /// The files, at least one.
        files: Vec<PathBuf>,
        /// The context to use; the files' current one when absent.
        context: Option<String>,
    },
}

/// Why there are no usable credentials.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The in-cluster variables are no address.
    #[error(
        "KUBERNETES_SERVICE_HOST={host} with KUBERNETES_SERVICE_PORT={port} is no address of an \
         API server; run krane in a pod, or give --kubeconfig"
    )]
    Server {
        /// The host as found.
        host: String,
        /// The port as found.
        port: String,
    },
    /// Not in a pod and nothing names a kubeconfig.
    #[error(
        "no Kubernetes credentials: not in a pod, KUBECONFIG is not set and there is no home \
         folder; give --kubeconfig"
    )]
    Nothing,
    /// A file of the pod's account is missing or unreadable.
    #[error(
        "cannot read {path} of the pod's ServiceAccount; set automountServiceAccountToken: true \
         for krane's pod"
    )]
    Account {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kubeconfig cannot be read or names things it does not hold.
    #[error("the kubeconfig {files} cannot be used; fix it, or give --kubeconfig and --context")]
    Kubeconfig {
        /// The files, separated by commas.
        files: String,
        /// What kube said.
        source: Box<KubeconfigError>,
    },
    /// The kubeconfig is no YAML, or a value in it is of the wrong type. What the parser says is
    /// left out: it quotes the lines around, and they hold tokens and keys (D34).
    #[error("the kubeconfig {} is malformed{place}; correct it there", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// " at line 6, column 4", empty when the parser names no place.
        place: String,
    },
    /// The kubeconfig asks for a proxy.
    #[error(
        "the kubeconfig {files} sets proxy-url, which krane does not support; use a context with \
         a direct way to the API server"
    )]
    Proxy {
        /// The files, separated by commas.
        files: String,
    },
    /// Certificates or keys are not usable.
    #[error("no client can be built from the Kubernetes credentials; check the CA and the key")]
    Client(#[source] Box<kube::Error>),
    /// The task that builds the client was cut.
    #[error("building the Kubernetes client was interrupted; try again")]
    Interrupted,
    /// Reading the credentials took too long.
    #[error(
        "the Kubernetes credentials were not there within {0:?}; check the credential plugin of \
         the kubeconfig, it must end without asking anybody"
    )]
    TimedOut(Duration),
}

impl KubeAccess {
    /// In-cluster when `KUBERNETES_SERVICE_HOST` is set and no flag asks for a file; else
    /// `--kubeconfig`, else `KUBECONFIG`, else the default file.
    ///
    /// Unlike `kube::Config::infer`, which prefers a file that happens to lie in the image.
    pub fn choose(inputs: &AccessInputs) -> Result<Self, AccessError> {
        let host = inputs
            .service_host
            .as_deref()
            .filter(|host| !host.is_empty());
        if let Some(host) = host
            && inputs.kubeconfig.is_none()
            && inputs.context.is_none()
        {
            let port = inputs.service_port.as_deref().unwrap_or_default();
            let server = server_uri(host, port).ok_or_else(|| AccessError::Server {
                host: host.to_owned(),
                port: port.to_owned(),
            })?;
            return Ok(Self::InCluster {
                server,
                account: PathBuf::from(ACCOUNT_FOLDER),
            });
        }
        let files = match &inputs.kubeconfig {
            Some(file) => vec![file.clone()],
            None => listed_files(inputs.kubeconfig_list.as_deref()),
        };
        let files = match (files.is_empty(), &inputs.home) {
            (false, _) => files,
            (true, Some(home)) => vec![home.join(".kube").join("config")],
            (true, None) => return Err(AccessError::Nothing),
        };
        Ok(Self::Kubeconfig {
            files,
            context: inputs.context.clone(),
        })
    }

    /// Reads the credentials. Blocks on files; kube starts exec plugins when the client is built.
    pub(super) fn load(&self) -> Result<Config, AccessError> {
        match self {
            Self::InCluster { server, account } => in_cluster(server, account),
            Self::Kubeconfig { files, context } => from_files(files, context.as_deref()),
        }
    }
}

impl fmt::Display for KubeAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster { server, .. } => write!(f, "the pod's own account at {server}"),
            Self::Kubeconfig { files, context } => {
                let context = context.as_deref().unwrap_or("the current one");
                write!(f, "kubeconfig {}, context {context}", join(files))
            }
        }
    }
}

fn server_uri(host: &str, port: &str) -> Option<Uri> {
    let port: u16 = port.parse().ok()?;
    let authority = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        Ok(IpAddr::V4(_)) | Err(_) => format!("{host}:{port}"),
    };
    Uri::builder()
        .scheme("https")
        .authority(authority)
        .path_and_query("/")
        .build()
        .ok()
}

fn listed_files(list: Option<&OsStr>) -> Vec<PathBuf> {
    let paths = list.map(std::env::split_paths).into_iter().flatten();
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Built by hand because kube's own constructor reads the environment and one fixed folder.
fn in_cluster(server: &Uri, account: &Path) -> Result<Config, AccessError> {
    let mut config = Config::new(server.clone());
    let namespace = read(&account.join("namespace"))?;
    namespace.trim().clone_into(&mut config.default_namespace);
    let token = account.join("token");
    open(&token)?;
    config.auth_info.token_file = Some(token.to_string_lossy().into_owned());
    let ca = account.join("ca.crt");
    open(&ca)?;
    config.root_cert_file = Some(ca);
    // The file above does the verification and is read again as it rotates; an empty list here
    // only keeps kube from loading the system's roots.
    config.root_cert = Some(Vec::new());
    Ok(config)
}

fn read(path: &Path) -> Result<String, AccessError> {
    std::fs::read_to_string(path).map_err(|source| AccessError::Account {
        path: path.to_owned(),
        source,
    })
}

/// Only opens: the content is read by kube, into a type that hides it.
fn open(path: &Path) -> Result<std::fs::File, AccessError> {
    std::fs::File::open(path).map_err(|source| AccessError::Account {
        path: path.to_owned(),
        source,
    })
}

fn from_files(files: &[PathBuf], context: Option<&str>) -> Result<Config, AccessError> {
    let failed = |source| AccessError::Kubeconfig {
        files: join(files),
        source: Box::new(source),
    };
    let mut merged = Kubeconfig::default();
    for file in files {
        let read = Kubeconfig::read_from(file).map_err(|error| {
            if let KubeconfigError::Parse(error) = &error {
                let place = place(&error.to_string());
                return AccessError::Malformed {
                    file: file.clone(),
                    place,
                };
            }
            failed(error)
        })?;
        merged = merged.merge(read).map_err(failed)?;
    }
    if let Some(context) = context {
        merged.current_context = Some(context.to_owned());
    }
    if wants_proxy(&merged) {
        return Err(AccessError::Proxy { files: join(files) });
    }
    // Where a cluster names no proxy, kube takes HTTPS_PROXY from the environment and then fails,
    // being built without proxy support. A name of our own keeps it from looking.
    for cluster in merged
        .clusters
        .iter_mut()
        .filter_map(|named| named.cluster.as_mut())
    {
        cluster.proxy_url = Some("http://none.invalid".to_owned());
    }
    let mut config = Config::try_from(merged).map_err(failed)?;
    config.proxy_url = None;
    Ok(config)
}

/// The place that a message of the YAML parser names, and nothing else of it.
fn place(message: &str) -> String {
    let number_after = |word: &str| {
        let (_, rest) = message.split_once(word)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    match (number_after("line "), number_after(" column ")) {
        (Some(line), Some(column)) => format!(" at line {line}, column {column}"),
        _ => String::new(),
    }
}

fn wants_proxy(kubeconfig: &Kubeconfig) -> bool {
    let current = kubeconfig.current_context.as_deref();
    let context = kubeconfig
        .contexts
        .iter()
        .find(|named| Some(named.name.as_str()) == current)
        .and_then(|named| named.context.as_ref());
    let Some(context) = context else { return false };
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|named| named.name == context.cluster);
    cluster
        .and_then(|named| named.cluster.as_ref())
        .and_then(|cluster| cluster.proxy_url.as_deref())
        .is_some_and(|proxy| !proxy.is_empty())
}

fn join(files: &[PathBuf]) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    names.join(", ")
}
