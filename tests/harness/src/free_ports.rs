//! Ports for servers that are about to start.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range from which systems give connections their own port: nobody takes one by chance before its server
/// is up.
const FIRST: u16 = 10_240;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Ports of 127.0.0.1 that nothing listens on, and that this process has not given away before.
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free_port()?;
    }
    Ok(ports)
}

fn free_port() -> io::Result<u16> {
    // Test programs that run side by side begin at different places.
    let start = std::process::id() % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = (start * 7 + step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).map_err(io::Error::other)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
