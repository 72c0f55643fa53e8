//! Whether the ports of the settings are free on this machine, or taken by the krane that serves
//! them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use krane_server::bind::{BindError, Listeners};
use krane_settings::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::findings::{Finding, Group};

/// For one answer of this machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of the longest answer that is looked at.
const LONGEST: usize = 4096;
const CHECK: &str = "ports";

/// A port that is taken, and whether krane itself answers there.
type Taken = (BindError, bool);

/// Tries every port. A taken one is fine when krane answers there as it does on that port: then the
/// preflight runs beside the agent, such as in its pod.
pub(super) async fn look(settings: &Settings) -> Vec<Finding> {
    let taken = Listeners::taken(settings).await;
    let asked = taken.into_iter().map(|error| async {
        let is_krane = timeout(PATIENCE, is_krane(&error, settings)).await;
        (error, is_krane.unwrap_or(false))
    });
    judge(&futures::future::join_all(asked).await)
}

/// Whether krane serves this port of these settings.
async fn is_krane(taken: &BindError, settings: &Settings) -> bool {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let metrics = settings.observability.metrics.prometheus_port;
    let at = |listen: SocketAddr| match listen.ip() {
        ip if !ip.is_unspecified() => (ip, taken.port).into(),
        IpAddr::V4(_) => (here, taken.port).into(),
        IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::LOCALHOST), taken.port).into(),
    };
    match (taken.key, settings.admin.listen, settings.health.listen) {
        ("admin.listen", Some(listen), _) => answers(at(listen), "/api/v1/health", is_page).await,
        ("health.listen", _, Some(listen)) if !listen.ip().is_unspecified() => {
            answers(at(listen), "/health/live", is_health).await
        }
        // Nobody can ask there without its certificate: its neighbour speaks for it.
        ("rpc_port", _, _) if settings.rpc.tls.is_some() => match metrics {
            Some(port) => answers((here, port.get()).into(), "/health/live", is_health).await,
            None => false,
        },
        (_, _, _) => answers((here, taken.port).into(), "/health/live", is_health).await,
    }
}

fn judge(taken: &[Taken]) -> Vec<Finding> {
    let group = Group::Network;
    if taken.is_empty() {
        return vec![Finding::pass(
            group,
            CHECK,
            "every port of krane is free here",
        )];
    }
    let strange = taken.iter().filter(|(_, is_krane)| !is_krane);
    let failed: Vec<Finding> = strange
        .map(|(error, _)| {
            Finding::fail(group, CHECK, "krane::check::port", error.to_string())
                .because(error.source.to_string())
                .fix(error.help())
        })
        .collect();
    if failed.is_empty() {
        let message = "the ports are in use by a krane that runs here";
        return vec![Finding::pass(group, CHECK, message)];
    }
    failed
}

/// Whether somebody answers this question as krane does.
async fn answers(address: SocketAddr, path: &str, is_kranes: fn(&str) -> bool) -> bool {
    let ask = async {
        let mut tcp = TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        tcp.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // Not everybody closes when asked to: the first words are enough.
        while !is_kranes(&String::from_utf8_lossy(&answer)) && answer.len() < LONGEST {
            if tcp.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(answer)
    };
    let answer = ask.await;
    answer.is_ok_and(|answer| is_kranes(&String::from_utf8_lossy(&answer)))
}

fn is_health(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 ") && answer.contains(r#"{"status":""#)
}

/// The page tells who it is, or asks for its token.
fn is_page(answer: &str) -> bool {
    let is_open =
        answer.starts_with("HTTP/1.1 200") && answer.contains(r#""identity":{"instance":"#);
    let is_closed = answer.starts_with("HTTP/1.1 401") && answer.contains(r#"realm="krane""#);
    is_open || is_closed
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    fn taken(key: &'static str, port: u16) -> BindError {
        BindError {
            key,
            port,
            source: std::io::ErrorKind::AddrInUse.into(),
        }
    }

    #[test]
    fn a_taken_port_is_wrong_unless_krane_itself_has_it() {
        assert_eq!(judge(&[])[0].state, State::Pass);
        let rpc = || taken("rpc_port", 8070);
        assert_eq!(judge(&[(rpc(), true)])[0].state, State::Pass);
        let admin = taken("admin.listen", 9091);
        let [found] = &judge(&[(rpc(), true), (admin, false)])[..] else {
            panic!("one line");
        };
        assert_eq!(found.state, State::Fail);
        assert!(found.fix.as_deref().unwrap().contains("9091"), "{found:?}");
    }
}
