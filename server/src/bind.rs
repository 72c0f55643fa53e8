//! Takes all ports before anything else starts, so that a taken one stops nothing half-way.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use krane_settings::Settings;

/// The sockets of this process; nobody accepts on them yet.
#[derive(Debug)]
pub struct Listeners {
    /// The RPC and health port.
    pub rpc: TcpListener,
    /// The metrics port; `None` when it is off.
    pub metrics: Option<TcpListener>,
    /// The port of the health endpoints alone; `None` when it is off.
    pub health: Option<TcpListener>,
    /// The page; `None` when it is off.
    pub admin: Option<TcpListener>,
}

/// A port that could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("{key}: cannot listen on port {port}")]
pub struct BindError {
    /// The configuration key that names the port.
    pub key: &'static str,
    /// The port.
    pub port: u16,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl BindError {
    /// What the operator does about it.
    #[must_use]
    pub fn help(&self) -> String {
        let Self { key, port, source } = self;
        let kind = source.kind();
        if kind == io::ErrorKind::AddrInUse {
            format!("stop what listens on port {port}, or set {key} to another port")
        } else if kind == io::ErrorKind::PermissionDenied {
            format!("set {key} to a port above 1023, lower ones need CAP_NET_BIND_SERVICE")
        } else if kind == io::ErrorKind::AddrNotAvailable {
            format!("set {key} to an address of this machine")
        } else {
            format!("set {key} to a port that can be used here")
        }
    }
}

impl Listeners {
    /// Takes every port that the settings name.
    pub async fn bind(settings: &Settings) -> Result<Self, BindError> {
        let rpc = everywhere("rpc_port", settings.rpc_port).await?;
        let metrics = match settings.observability.metrics.prometheus_port {
            Some(port) => {
                Some(everywhere("observability.metrics.prometheus_port", port.get()).await?)
            }
            None => None,
        };
        let health = match settings.health.listen {
            Some(address) => Some(at("health.listen", address).await?),
            None => None,
        };
        let admin = match settings.admin.listen {
            Some(address) => Some(on("admin.listen", address).await?),
            None => None,
        };
        Ok(Self {
            rpc,
            metrics,
            health,
            admin,
        })
    }
}

impl Listeners {
    /// Every port of the settings that cannot be taken now; keeps none.
    pub async fn taken(settings: &Settings) -> Vec<BindError> {
        let metrics = settings.observability.metrics.prometheus_port;
        let (rpc, metrics, health, admin) = tokio::join!(
            everywhere("rpc_port", settings.rpc_port),
            async {
                let port = metrics?.get();
                Some(everywhere("observability.metrics.prometheus_port", port).await)
            },
            async { Some(at("health.listen", settings.health.listen?).await) },
            async { Some(on("admin.listen", settings.admin.listen?).await) },
        );
        let tried = [Some(rpc), metrics, health, admin].into_iter().flatten();
        tried.filter_map(Result::err).collect()
    }
}

/// On all addresses of both families, or of the only one the machine has.
async fn everywhere(key: &'static str, port: u16) -> Result<TcpListener, BindError> {
    match on(key, (Ipv6Addr::UNSPECIFIED, port).into()).await {
        Err(error) if error.source.kind() != io::ErrorKind::AddrInUse => {
            on(key, (Ipv4Addr::UNSPECIFIED, port).into()).await
        }
        result => result,
    }
}

/// All addresses of both families are those of the only one where the machine has but one.
async fn at(key: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        everywhere(key, address.port()).await
    } else {
        on(key, address).await
    }
}

async fn on(key: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError {
        key,
        port: address.port(),
        source,
    })
}
