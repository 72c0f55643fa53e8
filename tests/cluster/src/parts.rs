//! What is built, at which pinned versions. The Go module beside this crate (`go/`) is the pins; it is compiled in, so that a
//! build needs nothing but the cache folder. It is one for all programs, so that what they share is compiled once.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::Component;

/// The oldest Go that the pinned modules accept.
pub(crate) const MIN_GO: (u32, u32) = (1, 26);
/// [`MIN_GO`] for messages.
pub(crate) const MIN_GO_TEXT: &str = "1.26";
/// The Kubernetes minor that prebuilt API servers must have.
pub(crate) const KUBERNETES_MINOR: &str = "1.36";
/// The environment of every `go` call: our versions only, no C, no toolchain downloads, no workspace of a caller.
pub(crate) const GO_ENV: [(&str, &str); 5] = [
    ("CGO_ENABLED", "0"),
    ("GO111MODULE", "on"),
    ("GOFLAGS", "-mod=readonly"),
    ("GOTOOLCHAIN", "local"),
    ("GOWORK", "off"),
];
/// The file with the Cilium CRD in its part.
pub(crate) const CILIUM_CRD: &str = "ciliumnetworkpolicies.yaml";

const VERSION_PACKAGE: &str = "k8s.io/component-base/version";

/// How a part is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recipe {
    /// `go build` of these packages, one for each program.
    Build {
        packages: &'static [(Component, &'static str)],
        ldflags: &'static [(&'static str, &'static str)],
    },
    /// A file out of a module that is downloaded and not built.
    File {
        module: &'static str,
        version: &'static str,
        path: &'static str,
        name: &'static str,
    },
}

/// What one call of `go` makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Name and text of the module's files.
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) recipe: Recipe,
}

const MODULE: &[(&str, &str)] = &[
    ("go.mod", include_str!("../go/go.mod")),
    ("go.sum", include_str!("../go/go.sum")),
    ("tools.go", include_str!("../go/tools.go")),
];

/// What is not worth the compiler's optimization: a fifth of all compiling goes there, and the programs start no slower.
const GCFLAGS: &str = include_str!("../go/gcflags");

pub(crate) const KUBERNETES: Part = Part {
    name: "kubernetes",
    files: MODULE,
    recipe: Recipe::Build {
        packages: &[
            (Component::ApiServer, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (
                Component::ControllerManager,
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            (Component::Scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
        ],
        ldflags: &[
            ("gitVersion", "v1.36.3"),
            ("gitMajor", "1"),
            ("gitMinor", "36"),
        ],
    },
};

pub(crate) const ETCD: Part = Part {
    name: "etcd",
    files: MODULE,
    recipe: Recipe::Build {
        packages: &[(Component::Etcd, "go.etcd.io/etcd/server/v3")],
        ldflags: &[],
    },
};

/// Backups are restored with it.
pub(crate) const ETCDUTL: Part = Part {
    name: "etcdutl",
    files: MODULE,
    recipe: Recipe::Build {
        packages: &[(Component::EtcdUtl, "go.etcd.io/etcd/etcdutl/v3")],
        ldflags: &[],
    },
};

pub(crate) const KWOK: Part = Part {
    name: "kwok",
    files: MODULE,
    recipe: Recipe::Build {
        packages: &[(Component::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
        ldflags: &[],
    },
};

/// Only the CRD is taken out of Cilium's module: nothing of it is built, so its own dependencies stay away.
pub(crate) const CILIUM: Part = Part {
    name: "cilium-crd",
    files: &[
        ("go.mod", include_str!("../go/cilium-crd/go.mod")),
        ("go.sum", include_str!("../go/cilium-crd/go.sum")),
    ],
    recipe: Recipe::File {
        module: "github.com/cilium/cilium",
        version: "v1.18.0",
        path: "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml",
        name: CILIUM_CRD,
    },
};

/// All parts, the slowest first.
pub(crate) const PARTS: [Part; 5] = [KUBERNETES, ETCD, ETCDUTL, KWOK, CILIUM];

/// A part, narrowed to what is missing.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) part: Part,
    /// The programs to build; empty for a part that is a file.
    pub(crate) programs: Vec<(Component, &'static str)>,
}

impl Order {
    /// The part without the programs that are already there.
    pub(crate) fn new(part: Part, found: impl Fn(Component) -> bool) -> Self {
        let programs = match part.recipe {
            Recipe::Build { packages, .. } => packages
                .iter()
                .copied()
                .filter(|(component, _)| !found(*component))
                .collect(),
            Recipe::File { .. } => Vec::new(),
        };
        Self { part, programs }
    }

    /// The files that a finished build of this order holds.
    pub(crate) fn products(&self) -> Vec<&'static str> {
        match self.part.recipe {
            Recipe::Build { .. } => self
                .programs
                .iter()
                .map(|(program, _)| program.program())
                .collect(),
            Recipe::File { name, .. } => vec![name],
        }
    }

    /// The arguments of `go build`, without `-o` and what follows.
    pub(crate) fn build_flags(&self) -> Vec<String> {
        let mut linker = "-s -w".to_owned();
        if let Recipe::Build { ldflags, .. } = self.part.recipe {
            for (variable, value) in ldflags {
                // Writing to a String cannot fail.
                let _ = write!(linker, " -X {VERSION_PACKAGE}.{variable}={value}");
            }
        }
        let fixed = ["build", "-trimpath", "-buildvcs=false", "-ldflags", &linker];
        let compiler = GCFLAGS.lines().map(|line| format!("-gcflags={line}"));
        fixed
            .map(str::to_owned)
            .into_iter()
            .chain(compiler)
            .collect()
    }

    /// The name of the folder in the cache: another pin, flag or Go version is another folder.
    pub(crate) fn folder(&self, go_version: &str) -> String {
        let mut hash = Sha256::new();
        let mut feed = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text.as_bytes());
        };
        for (name, text) in self.part.files {
            feed(name);
            feed(text);
        }
        for (name, value) in GO_ENV {
            feed(name);
            feed(value);
        }
        match self.part.recipe {
            Recipe::Build { .. } => {
                feed(go_version);
                self.build_flags().iter().for_each(|flag| feed(flag));
                self.programs.iter().for_each(|(_, package)| feed(package));
            }
            Recipe::File { path, version, .. } => {
                feed(version);
                feed(path);
            }
        }
        let digest = hash.finalize();
        let mut name = format!("{}-", self.part.name);
        for byte in &digest[..8] {
            let _ = write!(name, "{byte:02x}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_depends_on_go_and_on_the_programs() {
        let all = Order::new(KUBERNETES, |_| false);
        let some = Order::new(KUBERNETES, |component| component == Component::ApiServer);
        assert_eq!(all.folder("go1.26.8"), all.folder("go1.26.8"));
        assert_ne!(all.folder("go1.26.8"), all.folder("go1.26.9"));
        assert_ne!(all.folder("go1.26.8"), some.folder("go1.26.8"));
        assert_eq!(
            some.products(),
            ["kube-controller-manager", "kube-scheduler"]
        );
    }

    #[test]
    fn the_crd_does_not_depend_on_go() {
        let order = Order::new(CILIUM, |_| false);
        assert_eq!(order.folder("go1.26.8"), order.folder("go1.27.0"));
        assert_eq!(order.products(), [CILIUM_CRD]);
    }

    #[test]
    fn every_component_has_one_recipe() {
        for component in Component::ALL.into_iter().chain([Component::EtcdUtl]) {
            let recipes = PARTS
                .iter()
                .flat_map(|part| Order::new(*part, |_| false).programs)
                .filter(|(program, _)| *program == component);
            assert_eq!(recipes.count(), 1, "{component}");
        }
    }

    #[test]
    fn version_flags_and_pins_agree() {
        let Recipe::Build { ldflags, .. } = KUBERNETES.recipe else {
            unreachable!()
        };
        let version = ldflags[0].1;
        let (_, go_mod) = KUBERNETES.files[0];
        assert!(
            go_mod.contains(&format!("k8s.io/kubernetes {version}")),
            "{version}"
        );
        assert!(
            version
                .trim_start_matches('v')
                .starts_with(KUBERNETES_MINOR)
        );
        let Recipe::File {
            module, version, ..
        } = CILIUM.recipe
        else {
            unreachable!()
        };
        assert!(
            CILIUM.files[1]
                .1
                .contains(&format!("{module} {version} h1:"))
        );
    }
}
