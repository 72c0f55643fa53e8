//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok
//! in place of nodes.
//!
//! ```no_run
//! # async fn example() -> Result<(), krane_testcluster::Error> {
//! use krane_testcluster::{Cluster, Options};
//!
//! let cluster = Cluster::start(Options::default()).await?;
//! cluster.install("charts/krane/files/rbac.yaml".as_ref()).await?;
//! let kubeconfig = cluster.service_account_kubeconfig().await?;
//! let mark = cluster.audit_mark()?;
//! // … run krane with that kubeconfig …
//! let writes = cluster.writes_by(krane_testcluster::KRANE_USER, mark)?;
//! # Ok(())
//! # }
//! ```
//!
//! - The programs are built from pinned Go modules (`go/`) on first use, into a cache outside of the repository; see
//!   [`Binaries`].
//! - Everything listens on 127.0.0.1, on free ports, in a folder of its own under the temporary folder.
//! - Nothing outlives the process that started it, even when that is killed.
//! - Pods behave as their image's tag says: [`Behaviour`].

mod access;
mod audit;
mod backup;
mod behaviour;
mod binaries;
mod builder;
mod cluster;
mod component;
mod credentials;
mod error;
mod faults;
mod flags;
mod folder;
mod guard;
mod objects;
mod options;
mod parts;
mod pods;
mod ports;
mod process;
mod tail;
mod wait;

pub use audit::{AuditEntry, AuditMark};
pub use backup::{Backup, Revisions};
pub use behaviour::{BEHAVIOUR_ANNOTATION, Behaviour};
pub use binaries::{BIN_VARIABLE, Binaries, CACHE_VARIABLE, cache_folder};
pub use cluster::{Cluster, client_of};
pub use component::Component;
pub use credentials::ADMIN_USER;
pub use error::Error;
pub use folder::KEEP_VARIABLE;
pub use objects::{KRANE, KRANE_USER, ZONES};
pub use options::Options;
