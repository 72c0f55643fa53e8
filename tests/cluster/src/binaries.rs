//! Where the programs are: prebuilt ones that the environment names, the cache, or a build into the cache.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Component, Error,
    builder::{self, Go},
    parts::{CILIUM_CRD, KUBERNETES_MINOR, Order, PARTS, Recipe},
};

/// A folder with prebuilt programs of the names that [`Component::program`] gives, and optionally the Cilium CRD.
pub const BIN_VARIABLE: &str = "KRANE_TESTCLUSTER_BIN";
/// Where built programs are kept, instead of `$XDG_CACHE_HOME/krane/testcluster` or `~/.cache/krane/testcluster`.
pub const CACHE_VARIABLE: &str = "KRANE_TESTCLUSTER_CACHE";
/// The folder that `setup-envtest` makes: etcd and kube-apiserver are taken from it when the minor fits.
const ENVTEST_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The programs of a cluster and the CRD that comes with them.
#[derive(Debug, Clone)]
pub struct Binaries {
    programs: BTreeMap<Component, PathBuf>,
    cilium_crd: PathBuf,
}

impl Binaries {
    /// Finds everything, and builds into the cache what is missing (minutes, with progress on stderr).
    ///
    /// Blocks; call it from `spawn_blocking` in async code.
    pub fn ensure() -> Result<Self, Error> {
        let mut programs = prebuilt();
        let mut cilium_crd = variable(BIN_VARIABLE)
            .map(|folder| folder.join(CILIUM_CRD))
            .filter(|file| file.is_file());

        let orders: Vec<Order> = PARTS
            .into_iter()
            .map(|part| Order::new(part, |component| programs.contains_key(&component)))
            .filter(|order| match order.part.recipe {
                Recipe::Build { .. } => !order.programs.is_empty(),
                Recipe::File { .. } => cilium_crd.is_none(),
            })
            .collect();
        if !orders.is_empty() {
            let cache = cache_folder()?;
            let go = Go::find(&orders)?;
            for (order, folder) in orders.iter().zip(builder::ensure(&cache, &go, &orders)?) {
                for (component, _) in &order.programs {
                    programs.insert(*component, folder.join(component.program()));
                }
                if let Recipe::File { name, .. } = order.part.recipe {
                    cilium_crd = Some(folder.join(name));
                }
            }
        }
        // Every part is either found or built by now; an empty path can only mean a file removed meanwhile.
        Ok(Self {
            programs,
            cilium_crd: cilium_crd.unwrap_or_default(),
        })
    }

    /// The file of a program.
    pub fn program(&self, component: Component) -> &Path {
        match self.programs.get(&component) {
            Some(file) => file,
            None => Path::new(component.program()),
        }
    }

    /// Cilium's own CRD of CiliumNetworkPolicy.
    pub fn cilium_crd(&self) -> &Path {
        &self.cilium_crd
    }
}

/// The folder that holds what was built.
pub fn cache_folder() -> Result<PathBuf, Error> {
    if let Some(folder) = variable(CACHE_VARIABLE) {
        return Ok(folder);
    }
    variable("XDG_CACHE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".cache")))
        .map(|base| base.join("krane").join("testcluster"))
        .ok_or(Error::NoCacheFolder)
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn prebuilt() -> BTreeMap<Component, PathBuf> {
    let mut programs = BTreeMap::new();
    if let Some(folder) = variable(ENVTEST_VARIABLE) {
        let etcd = folder.join(Component::Etcd.program());
        let api_server = folder.join(Component::ApiServer.program());
        if etcd.is_file() && has_our_minor(&api_server) {
            programs.insert(Component::Etcd, etcd);
            programs.insert(Component::ApiServer, api_server);
        }
    }
    // Named for this purpose, so it wins.
    if let Some(folder) = variable(BIN_VARIABLE) {
        for component in Component::ALL.into_iter().chain([Component::EtcdUtl]) {
            let file = folder.join(component.program());
            if fs::metadata(&file).is_ok_and(|file| file.is_file()) {
                programs.insert(component, file);
            }
        }
    }
    programs
}

/// Whether `kube-apiserver --version` prints our minor; a program that does not run has none.
fn has_our_minor(api_server: &Path) -> bool {
    Command::new(api_server)
        .arg("--version")
        .output()
        .is_ok_and(|output| is_our_minor(&String::from_utf8_lossy(&output.stdout)))
}

fn is_our_minor(version: &str) -> bool {
    version
        .trim()
        .strip_prefix("Kubernetes v")
        .and_then(|version| version.strip_prefix(KUBERNETES_MINOR))
        .is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_minor_is_taken_from_elsewhere() {
        assert!(is_our_minor("Kubernetes v1.36.0\n"));
        assert!(is_our_minor("Kubernetes v1.36.12"));
        assert!(!is_our_minor("Kubernetes v1.35.2"));
        assert!(!is_our_minor("Kubernetes v1.360.0"));
        assert!(!is_our_minor(""));
    }
}
