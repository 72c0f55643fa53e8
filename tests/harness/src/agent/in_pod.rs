//! A process that finds its way to the API server as a container does: no kubeconfig, the files that a kubelet mounts.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Mounts the folder `$1` where a kubelet mounts the ServiceAccount of a pod, for this process alone, and becomes the
/// rest of the arguments.
const ENTER: &str = r#"
set -e
run=$(readlink -f /var/run)
mount -t tmpfs tmpfs "$run"
mkdir -p "$run/secrets/kubernetes.io/serviceaccount"
cp -r "$1"/* "$run/secrets/kubernetes.io/serviceaccount"
shift
exec "$@"
"#;
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// What a kubelet gives to a pod.
#[derive(Clone, Debug)]
pub(crate) struct InPod {
    /// Holds `token`, `ca.crt` and `namespace`.
    pub(crate) account: PathBuf,
    /// Port of the API server at 127.0.0.1.
    pub(crate) port: u16,
}

impl InPod {
    /// Whether this machine lets a process have mounts of its own: Linux, where user namespaces are not forbidden.
    pub(crate) fn works() -> bool {
        let tried = Command::new("unshare")
            .args(["-rm", "sh", "-c", ENTER, "sh"])
            .args([env!("CARGO_MANIFEST_DIR"), "true"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    }

    /// The command line that enters the pod and starts `binary`.
    pub(crate) fn command(&self, binary: &Path) -> Vec<OsString> {
        let words = ["unshare", "-rm", "sh", "-c", ENTER, "sh"].map(OsString::from);
        let what = [self.account.as_os_str(), binary.as_os_str()].map(OsStr::to_owned);
        words.into_iter().chain(what).collect()
    }

    /// What a kubelet sets.
    pub(crate) fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
            ("KUBERNETES_SERVICE_PORT", self.port.to_string()),
            ("PATH", PATH.to_owned()),
        ]
    }
}
