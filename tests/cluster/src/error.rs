//! What can go wrong, one variant per step. Messages say what to do; logs of programs come along.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::Component;

/// Why a test cluster could not be built, started or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No folder for the built programs is known.
    #[error("no cache folder: set KRANE_TESTCLUSTER_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// The cache folder cannot be written.
    #[error(
        "cannot write {} in the cache; set KRANE_TESTCLUSTER_CACHE to a writable folder",
        path.display()
    )]
    Cache {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Programs must be built and there is no Go.
    #[error(
        "`go` cannot be started, and {missing} must be built: install Go {needed} or newer \
         (https://go.dev/dl), or point KRANE_TESTCLUSTER_BIN to a folder with prebuilt programs"
    )]
    GoMissing {
        /// What was to be built.
        missing: String,
        /// The oldest Go that builds it.
        needed: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The installed Go cannot build the pinned versions.
    #[error(
        "found {found}, but {missing} must be built with Go {needed} or newer: install it \
         (https://go.dev/dl), or point KRANE_TESTCLUSTER_BIN to a folder with prebuilt programs"
    )]
    GoTooOld {
        /// What was to be built.
        missing: String,
        /// What `go env GOVERSION` printed.
        found: String,
        /// The oldest Go that builds it.
        needed: &'static str,
    },
    /// `go` ran and failed.
    #[error(
        "go could not build {part}: {status}; it needs the Go module proxy on the first run; its last lines:\n{tail}"
    )]
    GoBuild {
        /// The part that was built.
        part: &'static str,
        /// How `go` ended.
        status: ExitStatus,
        /// The end of its output.
        tail: String,
    },
    /// A downloaded module is not the pinned one.
    #[error(
        "module {module} has sum {found}, go.sum pins {pinned}: clear the Go module cache (go clean -modcache)"
    )]
    ModuleSum {
        /// The module.
        module: &'static str,
        /// The sum of what was downloaded.
        found: String,
        /// The sum in go.sum.
        pinned: String,
    },
    /// `go` printed something unexpected.
    #[error("cannot read what go printed about {part}")]
    GoOutput {
        /// The part that was downloaded.
        part: &'static str,
        /// The parser's words.
        source: serde_json::Error,
    },
    /// A file in the cluster's own folder cannot be written or read.
    #[error("cannot use {}; is the temporary folder (TMPDIR) writable and not full?", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Keys or certificates cannot be made.
    #[error("cannot make the cluster's certificates")]
    Certificates(#[from] rcgen::Error),
    /// No port is free.
    #[error("no free TCP port on 127.0.0.1")]
    Ports(#[source] io::Error),
    /// The shell processes that end everything with this process cannot be started.
    #[error("cannot start the guard of the cluster's processes: is `sh` in PATH?")]
    Guard(#[source] io::Error),
    /// A program cannot be started.
    #[error("cannot start {component} from {}; remove that folder to build it again", program.display())]
    Spawn {
        /// The program's role.
        component: Component,
        /// Its file.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// etcd cannot be restored from a backup.
    #[error("etcdutl cannot restore the backup: {status}; its last lines:\n{tail}")]
    Restore {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },
    /// A program ended while it was needed.
    #[error("{component} ended: {status}; its last lines:\n{tail}")]
    Exited {
        /// The program's role.
        component: Component,
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },
    /// Something did not become true in time.
    #[error("{what} not reached within {waited:?}: {last}; last lines of {component}:\n{tail}")]
    NotReady {
        /// The state that was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// What was seen last.
        last: String,
        /// The program that should have done it.
        component: Component,
        /// The end of its log.
        tail: String,
    },
    /// A component that is not part of this cluster, or not running, was named.
    #[error("{component} is {state}; see Options and Cluster::restart")]
    WrongState {
        /// The component.
        component: Component,
        /// What it is instead.
        state: &'static str,
    },
    /// A signal could not be sent.
    #[error("cannot signal {component}")]
    Signal {
        /// The receiver.
        component: Component,
        /// What the system said.
        source: io::Error,
    },
    /// A kubeconfig of the cluster is not usable.
    #[error("cannot use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// kube's words.
        source: kube::config::KubeconfigError,
    },
    /// A client cannot be made.
    #[error("cannot make a Kubernetes client")]
    Client(#[source] kube::Error),
    /// A request to the API server failed.
    #[error("cannot {what}")]
    Request {
        /// What was tried.
        what: String,
        /// kube's words.
        source: kube::Error,
    },
    /// A manifest is not YAML.
    #[error("cannot read the manifests of {}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        source: Box<serde_saphyr::Error>,
    },
    /// A manifest misses a field.
    #[error("a manifest of {} has no {field}", path.display())]
    ManifestField {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
    },
    /// The audit log was asked for and is off.
    #[error("this cluster has no audit log: start it with `Options {{ audit: true, .. }}`")]
    AuditOff,
    /// A background step of the start panicked or was cancelled.
    #[error("the build step was interrupted")]
    Interrupted(#[source] tokio::task::JoinError),
}

impl Error {
    /// Whether another program took one of our ports between choosing and using it.
    pub(crate) fn is_port_collision(&self) -> bool {
        let (Self::Exited { tail, .. } | Self::NotReady { tail, .. }) = self else {
            return false;
        };
        tail.contains("address already in use")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn ended_with(tail: &str) -> Error {
        Error::Exited {
            component: Component::ApiServer,
            status: ExitStatus::from_raw(256),
            tail: tail.to_owned(),
        }
    }

    #[test]
    fn a_taken_port_is_told_apart() {
        assert!(
            ended_with("listen tcp 127.0.0.1:1: bind: address already in use").is_port_collision()
        );
        assert!(!ended_with("unknown flag: --x").is_port_collision());
        assert!(!Error::NoCacheFolder.is_port_collision());
    }

    #[test]
    fn an_ended_program_is_shown_with_its_log() {
        let text = ended_with("unknown flag: --x").to_string();
        assert!(
            text.contains("kube-apiserver") && text.contains("unknown flag"),
            "{text}"
        );
    }
}
