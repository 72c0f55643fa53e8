//! Ports for servers that are about to start.

use std::{
    env,
    fs::{self, File},
    io,
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

use parking_lot::Mutex;

/// Below the range from which systems give connections their own port: nobody takes one by chance before its server
/// is up.
const FIRST: u16 = 10_240;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);
/// Locks on the ports that this process has given away; they end with it.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Ports of 127.0.0.1 that nothing listens on, and that no test process that still runs was given before.
///
/// # Errors
/// When all are taken, or the folder of locks in the system's temporary one cannot be written.
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
        let Some(lock) = lock(port)? else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            TAKEN.lock().push(lock);
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// A port is given away before its server listens; until then only the lock tells other test programs.
fn lock(port: u16) -> io::Result<Option<File>> {
    let user = rustix::process::getuid().as_raw();
    let folder = env::temp_dir().join(format!("krane-test-ports-{user}"));
    fs::create_dir_all(&folder)?;
    let file = File::create(folder.join(port.to_string()))?;
    Ok(file.try_lock().is_ok().then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_away_once_also_between_programs() {
        let [port] = free_ports().unwrap();
        assert!(lock(port).unwrap().is_none());
    }
}
