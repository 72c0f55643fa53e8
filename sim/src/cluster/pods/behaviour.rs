//! How pods behave once they have a node.

use serde_json::Value;

/// What becomes of a pod. Chosen by the tag of its first image (`registry.example/app:crash`), as
/// on the real test cluster; any other tag is [`Behaviour::Well`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// An address, Running, and Ready after a while.
    Well,
    /// Never started: no address, Pending.
    Pending,
    /// An address, but the image never arrives.
    ImagePull,
    /// Well, but later.
    Slow,
    /// Running, never Ready.
    Unready,
    /// Running, `CrashLoopBackOff`, again and again.
    Crash,
    /// Failed after a while; its ReplicaSet replaces it.
    Fail,
    /// Well, but stays Terminating when deleted.
    Stuck,
    /// Started, and then only what the test does.
    Manual,
}

impl Behaviour {
    pub(super) fn of(pod: &Value) -> Self {
        let image = pod["spec"]["containers"][0]["image"].as_str();
        let name = image.and_then(|image| image.rsplit('/').next());
        match name.and_then(|name| name.split_once(':')) {
            Some((_, "pending")) => Self::Pending,
            Some((_, "image-pull")) => Self::ImagePull,
            Some((_, "slow")) => Self::Slow,
            Some((_, "unready")) => Self::Unready,
            Some((_, "crash")) => Self::Crash,
            Some((_, "fail")) => Self::Fail,
            Some((_, "stuck")) => Self::Stuck,
            Some((_, "manual")) => Self::Manual,
            _ => Self::Well,
        }
    }
}
