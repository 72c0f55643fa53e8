//! The folder of one cluster: keys, kubeconfigs, logs, the store's data.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Component, Error};

/// Set to any value, the folder of a cluster outlives it (its programs never do).
pub const KEEP_VARIABLE: &str = "KRANE_TESTCLUSTER_KEEP";

/// Writes a file and returns its path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    match fs::write(&path, text) {
        Ok(()) => Ok(path),
        Err(source) => Err(Error::Files { path, source }),
    }
}

/// A fresh folder in the system's temporary folder, readable by this user only.
pub(crate) fn create() -> Result<PathBuf, Error> {
    tempfile::Builder::new()
        .prefix("krane-testcluster-")
        .tempdir()
        // The guard's janitor removes it: it also does so when this process is killed.
        .map(tempfile::TempDir::keep)
        .map_err(|source| Error::Files {
            path: std::env::temp_dir(),
            source,
        })
}

/// The log of a program.
pub(crate) fn log(folder: &Path, component: Component) -> PathBuf {
    folder.join(format!("{}.log", component.program()))
}

/// The kubeconfig of a program or of the admin.
pub(crate) fn kubeconfig_name(user: &str) -> String {
    format!("{}.kubeconfig", user.replace(':', "-"))
}
