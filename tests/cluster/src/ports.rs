//! Free TCP ports on 127.0.0.1.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Below the range from which systems take the ports of outgoing connections: a port of ours stays ours while the
/// API server is down between a kill and a restart.
const RANGE: Range<u16> = 18_000..32_000;
const ATTEMPTS: usize = 200;

/// A port nobody listens on now. Another program may take it before it is used; the start is then repeated.
pub(crate) fn free_port() -> io::Result<u16> {
    for _ in 0..ATTEMPTS {
        let port = fastrand::u16(RANGE);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    // The range is crowded or forbidden here: let the system choose.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// The ports of one cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd_client: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
}

impl Ports {
    /// Three different free ports.
    pub(crate) fn choose() -> io::Result<Self> {
        let etcd_client = free_port()?;
        let mut etcd_peer = free_port()?;
        while etcd_peer == etcd_client {
            etcd_peer = free_port()?;
        }
        let mut api_server = free_port()?;
        while api_server == etcd_client || api_server == etcd_peer {
            api_server = free_port()?;
        }
        Ok(Self {
            etcd_client,
            etcd_peer,
            api_server,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_free() {
        let ports = Ports::choose().unwrap();
        assert_ne!(ports.etcd_client, ports.etcd_peer);
        assert_ne!(ports.etcd_client, ports.api_server);
        TcpListener::bind((Ipv4Addr::LOCALHOST, ports.api_server)).unwrap();
    }
}
