//! Ports nobody listens on.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

/// Different free ports of 127.0.0.1. Another program may take one before its use: krane then ends with code 69.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
