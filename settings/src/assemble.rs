//! Puts the typed values together and checks those that depend on each other.
//!
//! Each function reads all its keys before the first `?`, so that one problem hides no other.

mod credentials;
mod observability;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::problem::ProblemKind;
use super::reader::{Read, Reader, Recorded};
use super::types::{Region, show_duration};
use super::{
    AccessInputs, Admin, Cilium, Control, Deployments, Health, K8s, Lease, LoadInput, RateLimit,
    Replay, Report, Resync, Rpc, RpcTls, Safety, Scheduler, Secrets, Sentinel, Settings,
};

pub(super) fn settings(r: &mut Reader, input: &LoadInput) -> Read<Settings> {
    let instance_id = instance_id(r);
    let region = region(r);
    let rpc_port = r.required("rpc_port");
    let storage_class_name = r.required("storage_class_name");
    let control = control(r);
    let registry = credentials::registry(r);
    let vault = credentials::vault(r);
    let audience = r.optional("secrets.audience");
    let scheduler_token = r.optional_secret("scheduler.token");
    let rpc = rpc(r);
    let deployments = deployments(r);
    let cilium_required = r.required("cilium.required");
    let probe_paths = r.required("sentinel.probe_paths");
    let report_address = r.required("report.address");
    let health_listen = r.optional::<SocketAddr>("health.listen");
    let resync_interval = r.required("resync.interval");
    let replay_interval = r.required::<Duration>("replay.interval");
    let writes = r.required("safety.writes");
    let upgrades = r.required("safety.upgrades");
    let max_deletes_percent = r.required("safety.max_deletes_percent");
    let k8s = k8s(r);
    let lease = lease(r);
    let listen = r.optional::<SocketAddr>("admin.listen");
    let admin = admin(r, listen);
    let prometheus_port = r.required::<u16>("observability.metrics.prometheus_port");
    let observability = observability::read(r, prometheus_port, input);
    let ports = distinct_ports(r, rpc_port, prometheus_port, health_listen, listen);
    let kubernetes = kubernetes(input);
    ports?;
    Ok(Settings {
        instance_id: instance_id?,
        region: region?,
        rpc_port: rpc_port?,
        storage_class_name: storage_class_name?,
        control: control?,
        registry: registry?,
        vault: vault?,
        secrets: Secrets {
            audience: audience?,
        },
        scheduler: Scheduler {
            token: scheduler_token?,
        },
        rpc: rpc?,
        deployments: deployments?,
        cilium: Cilium {
            required: cilium_required?,
        },
        sentinel: Sentinel {
            probe_paths: probe_paths?,
        },
        report: Report {
            address: report_address?,
        },
        health: Health {
            listen: health_listen?,
        },
        resync: Resync {
            interval: resync_interval?,
        },
        replay: Replay {
            interval: replay_interval.map(|it| (!it.is_zero()).then_some(it))?,
        },
        safety: Safety {
            writes: writes?,
            upgrades: upgrades?,
            max_deletes_percent: max_deletes_percent?,
        },
        k8s: k8s?,
        lease: lease?,
        admin: admin?,
        observability: observability?,
        kubernetes,
    })
}

fn instance_id(r: &mut Reader) -> Read<String> {
    if let Some(given) = r.optional("instance_id")? {
        return Ok(given);
    }
    let random = std::iter::repeat_with(fastrand::alphanumeric).map(|c| c.to_ascii_lowercase());
    let id = format!("ins_{}", random.take(8).collect::<String>());
    r.set_generated("instance_id", id.clone());
    Ok(id)
}

fn region(r: &mut Reader) -> Read<Region> {
    let platform = r.optional::<String>("platform");
    let region = r.required::<String>("region");
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

fn control(r: &mut Reader) -> Read<Control> {
    let url = r.required("control.url");
    let token = r.required_secret("control.token");
    let ca_file = r.optional_file("control.ca_file");
    let max_backlog = r.required("control.max_backlog");
    Ok(Control {
        url: url?,
        token: token?,
        ca_file: ca_file?,
        max_backlog: max_backlog?,
    })
}

/// Records a problem for each of `paths` that is missing while another one is set.
fn all_or_none(r: &mut Reader, paths: &[&str]) -> Read<bool> {
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

fn rpc(r: &mut Reader) -> Read<Rpc> {
    let complete = all_or_none(r, &["rpc.tls.cert", "rpc.tls.key"]);
    let cert: Read<Option<PathBuf>> = r.optional_file("rpc.tls.cert");
    let key = r.optional_file("rpc.tls.key");
    let reflection = r.required("rpc.reflection");
    complete?;
    let tls = cert?.zip(key?).map(|(cert, key)| RpcTls { cert, key });
    Ok(Rpc {
        tls,
        reflection: reflection?,
    })
}

fn deployments(r: &mut Reader) -> Read<Deployments> {
    let replace_outdated_pods = r.required("deployments.replace_outdated_pods");
    let request_divisor = r.required("deployments.request_divisor");
    let max_replicas = r.required("deployments.max_replicas");
    Ok(Deployments {
        replace_outdated_pods: replace_outdated_pods?,
        request_divisor: request_divisor?,
        max_replicas: max_replicas?,
    })
}

fn k8s(r: &mut Reader) -> Read<K8s> {
    let max_in_flight = r.required("k8s.max_in_flight");
    let qps = r.required::<u32>("k8s.qps");
    let burst = r.required::<u32>("k8s.burst");
    let (max_in_flight, qps, burst) = (max_in_flight?, qps?, burst?);
    let rate_limit = NonZeroU32::new(qps).map(|per_second| RateLimit {
        per_second,
        burst: NonZeroU32::new(burst).unwrap_or(per_second),
    });
    Ok(K8s {
        max_in_flight,
        rate_limit,
    })
}

fn lease(r: &mut Reader) -> Read<Lease> {
    let enabled = r.required("lease.enabled");
    let duration = r.required::<Duration>("lease.duration");
    let renew = r.required("lease.renew");
    let retry = r.required("lease.retry");
    let lease = Lease {
        enabled: enabled?,
        duration: duration?,
        renew: renew?,
        retry: retry?,
    };
    let mut fits = Ok(());
    if lease.duration.subsec_nanos() != 0 {
        // The Lease object counts in whole seconds.
        let kind = ProblemKind::Conflict("must be whole seconds".to_owned());
        fits = Err(r.wrong(
            "lease.duration",
            kind,
            "round it, such as \"15s\"".to_owned(),
        ));
    }
    for (path, shorter, longer_path, longer) in [
        ("lease.renew", lease.renew, "lease.duration", lease.duration),
        ("lease.retry", lease.retry, "lease.renew", lease.renew),
    ] {
        if shorter >= longer {
            let shown = show_duration(longer);
            let kind = ProblemKind::Conflict(format!("must be less than {longer_path} ({shown})"));
            let help = format!("lower {path} or raise {longer_path}");
            fits = Err(r.wrong(path, kind, help));
        }
    }
    fits.map(|()| lease)
}

fn admin(r: &mut Reader, listen: Read<Option<SocketAddr>>) -> Read<Admin> {
    let token = r.optional_secret("admin.token");
    let actions = r.required("admin.actions");
    let (listen, token) = (listen?, token?);
    if token.is_none() && listen.is_some_and(|address| !address.ip().is_loopback()) {
        let kind =
            ProblemKind::Conflict("needs admin.token, it is reachable from outside".to_owned());
        let help = "set admin.token_file, or listen on 127.0.0.1 and use kubectl port-forward";
        return Err(r.wrong("admin.listen", kind, help.to_owned()));
    }
    let actions = actions?;
    if actions && token.is_none() {
        let kind =
            ProblemKind::Conflict("needs admin.token: whoever may act has to prove it".to_owned());
        let help = "set admin.token_file, or leave admin.actions off";
        return Err(r.wrong("admin.actions", kind, help.to_owned()));
    }
    Ok(Admin {
        listen,
        token,
        actions,
    })
}

/// Each server listens on all addresses or on loopback, so equal numbers collide.
fn distinct_ports(
    r: &mut Reader,
    rpc_port: Read<u16>,
    prometheus_port: Read<u16>,
    health: Read<Option<SocketAddr>>,
    page: Read<Option<SocketAddr>>,
) -> Read<()> {
    let of = |listen: Read<Option<SocketAddr>>| listen.ok().flatten().map(|it| it.port());
    let ports = [
        ("rpc_port", rpc_port.ok()),
        (
            "observability.metrics.prometheus_port",
            prometheus_port.ok(),
        ),
        ("health.listen", of(health)),
        ("admin.listen", of(page)),
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
fn kubernetes(input: &LoadInput) -> AccessInputs {
    let set = |name: &str| {
        input
            .env
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    };
    AccessInputs {
        service_host: set("KUBERNETES_SERVICE_HOST"),
        service_port: set("KUBERNETES_SERVICE_PORT"),
        kubeconfig_list: set("KUBECONFIG").map(Into::into),
        home: set("HOME").map(PathBuf::from),
        kubeconfig: input.kubeconfig.clone(),
        context: input.context.clone(),
    }
}
