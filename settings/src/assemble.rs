//! What depends on several keys, or on more than keys. `table.rs` says what is read by which function here.

mod credentials;
mod observability;

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

pub(super) use credentials::{registry, vault};
pub(super) use observability::{directives, tracing};

use super::problem::ProblemKind;
use super::reader::{Group, Read, Reader, Recorded, Setting};
use super::types::{Region, show_duration};
use super::{AccessInputs, RateLimit};

/// Gives values to keys that follow from something else as long as nobody sets them.
pub(super) fn prepare(r: &mut Reader<'_>) {
    if r.peek::<String>("instance_id") == Ok(None) {
        let random = std::iter::repeat_with(fastrand::alphanumeric).map(|c| c.to_ascii_lowercase());
        let id = format!("ins_{}", random.take(8).collect::<String>());
        r.set_generated("instance_id", id);
    }
    observability::prepare_tracing(r);
}

pub(super) fn region(r: &mut Reader<'_>, path: &str) -> Read<Region> {
    let platform = <Option<String>>::read(r, "platform");
    let region = String::read(r, path);
    let (platform, name) = (platform?, region?);
    if let Some(platform) = platform {
        return Ok(Region { platform, name });
    }
    Region::from_combined(&name).ok_or_else(|| {
        let help = "set platform, such as \"aws\", or KRANE__PLATFORM; \
                    or give region as \"us-east-1.aws\"";
        r.wrong("platform", ProblemKind::Missing, help.to_owned())
    })
}

/// Records a problem for each of `paths` that is missing while another one is set.
fn are_complete(r: &mut Reader<'_>, paths: &[&str]) -> Read<bool> {
    let (set, missing): (Vec<&str>, Vec<&str>) = paths.iter().partition(|path| r.is_set(path));
    if set.is_empty() || missing.is_empty() {
        return Ok(!set.is_empty());
    }
    for path in missing {
        let help = format!("set {path} too, or remove {}", set.join(", "));
        r.wrong(path, ProblemKind::HalfSet(set.join(", ")), help);
    }
    Err(Recorded)
}

/// A section whose keys are only set together.
pub(super) fn all_or_none<T: Group>(r: &mut Reader<'_>, _: &str) -> Read<Option<T>> {
    let complete = are_complete(r, T::PATHS);
    let parts = T::parts(r);
    Ok(if complete? { parts? } else { None })
}

pub(super) fn unless_zero(r: &mut Reader<'_>, path: &str) -> Read<Option<Duration>> {
    let duration = Duration::read(r, path)?;
    Ok((!duration.is_zero()).then_some(duration))
}

pub(super) fn port_unless_zero(r: &mut Reader<'_>, path: &str) -> Read<Option<NonZeroU16>> {
    u16::read(r, path).map(NonZeroU16::new)
}

pub(super) fn rate_limit(r: &mut Reader<'_>, _: &str) -> Read<Option<RateLimit>> {
    let per_second = u32::read(r, "k8s.qps").map(NonZeroU32::new);
    let burst = u32::read(r, "k8s.burst").map(NonZeroU32::new);
    let (per_second, burst) = (per_second?, burst?);
    Ok(per_second.map(|per_second| RateLimit {
        per_second,
        burst: burst.unwrap_or(per_second),
    }))
}

pub(super) fn lease_times(r: &mut Reader<'_>) -> Read<()> {
    let paths = ["lease.duration", "lease.renew", "lease.retry"];
    let [Ok(Some(duration)), Ok(Some(renew)), Ok(Some(retry))] =
        paths.map(|path| r.peek::<Duration>(path))
    else {
        return Ok(());
    };
    let mut fits = Ok(());
    if duration.subsec_nanos() != 0 {
        // The Lease object counts in whole seconds.
        let kind = ProblemKind::Conflict("must be whole seconds".to_owned());
        let help = "round it, such as \"15s\"".to_owned();
        fits = Err(r.wrong("lease.duration", kind, help));
    }
    for (path, shorter, longer_path, longer) in [
        ("lease.renew", renew, "lease.duration", duration),
        ("lease.retry", retry, "lease.renew", renew),
    ] {
        if shorter >= longer {
            let shown = show_duration(longer);
            let kind = ProblemKind::Conflict(format!("must be less than {longer_path} ({shown})"));
            let help = format!("lower {path} or raise {longer_path}");
            fits = Err(r.wrong(path, kind, help));
        }
    }
    fits
}

pub(super) fn admin_token(r: &mut Reader<'_>) -> Read<()> {
    let listen = r.peek::<SocketAddr>("admin.listen")?;
    if r.is_set("admin.token") {
        return Ok(());
    }
    if listen.is_some_and(|address| !address.ip().is_loopback()) {
        let kind =
            ProblemKind::Conflict("needs admin.token, it is reachable from outside".to_owned());
        let help = "set admin.token_file, or listen on 127.0.0.1 and use kubectl port-forward";
        return Err(r.wrong("admin.listen", kind, help.to_owned()));
    }
    if r.peek::<bool>("admin.actions")? == Some(true) {
        let kind =
            ProblemKind::Conflict("needs admin.token: whoever may act has to prove it".to_owned());
        let help = "set admin.token_file, or leave admin.actions off";
        return Err(r.wrong("admin.actions", kind, help.to_owned()));
    }
    Ok(())
}

/// Each server listens on all addresses or on loopback, so equal numbers collide.
pub(super) fn distinct_ports(r: &mut Reader<'_>) -> Read<()> {
    let number = |path| (path, r.peek::<u16>(path).ok().flatten());
    let of_address = |path| {
        let address = r.peek::<SocketAddr>(path).ok().flatten();
        (path, address.map(|it| it.port()))
    };
    let ports: [(&'static str, _); 4] = [
        number("rpc_port"),
        number("observability.metrics.prometheus_port"),
        of_address("health.listen"),
        of_address("admin.listen"),
    ];
    let mut distinct = Ok(());
    for (index, (path, port)) in ports.iter().enumerate() {
        let Some(port) = port.filter(|port| *port != 0) else {
            continue;
        };
        let earlier = ports.iter().take(index);
        for (other, _) in earlier.filter(|(_, taken)| *taken == Some(port)) {
            let help = format!("give {path} or {other} another port");
            distinct = Err(r.wrong(path, ProblemKind::PortTaken(other), help));
        }
    }
    distinct
}

/// What the choice of the credentials depends on; the cluster edge makes it.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it has the form of a reading function"
)]
pub(super) fn kubernetes(r: &mut Reader<'_>, _: &str) -> Read<AccessInputs> {
    let input = r.input;
    let set = |name: &str| {
        let value = input.env.get(name);
        value.filter(|value| !value.is_empty()).cloned()
    };
    Ok(AccessInputs {
        service_host: set("KUBERNETES_SERVICE_HOST"),
        service_port: set("KUBERNETES_SERVICE_PORT"),
        kubeconfig_list: set("KUBECONFIG").map(Into::into),
        home: set("HOME").map(PathBuf::from),
        kubeconfig: input.kubeconfig.clone(),
        context: input.context.clone(),
    })
}
