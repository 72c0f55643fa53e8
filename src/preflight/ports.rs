//! Whether the ports of the settings are free on this machine, or taken by a krane that runs.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::findings::{Finding, Group};
use crate::rpc::bind::{BindError, Listeners};
use crate::settings::Settings;

/// For one answer of this machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of the longest answer that is looked at.
const LONGEST: usize = 4096;
const CHECK: &str = "ports";

/// Tries every port. Taken ports are fine when a krane answers on the one with its health: then the
/// preflight runs beside the agent, such as in its pod.
pub(super) async fn look(settings: &Settings) -> Vec<Finding> {
    let taken = Listeners::taken(settings).await;
    if taken.is_empty() {
        return judge(&taken, false);
    }
    let metrics = settings.observability.metrics.prometheus_port;
    let plain = settings.rpc.tls.is_none().then_some(settings.rpc_port);
    let mut is_krane = false;
    for port in plain.into_iter().chain(metrics.map(std::num::NonZero::get)) {
        is_krane |= timeout(PATIENCE, is_healthy_krane(port))
            .await
            .unwrap_or(false);
    }
    judge(&taken, is_krane)
}

fn judge(taken: &[BindError], is_krane: bool) -> Vec<Finding> {
    let group = Group::Network;
    if taken.is_empty() {
        return vec![Finding::pass(
            group,
            CHECK,
            "every port of krane is free here",
        )];
    }
    if is_krane {
        let message = "the ports are in use by a krane that runs here";
        return vec![Finding::pass(group, CHECK, message)];
    }
    let failed = taken.iter().map(|error| {
        Finding::fail(group, CHECK, "krane::check::port", error.to_string())
            .because(error.source.to_string())
            .fix(error.help())
    });
    failed.collect()
}

/// Whether somebody on this port answers for its health as krane does.
async fn is_healthy_krane(port: u16) -> bool {
    let ask = async {
        let mut tcp = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await?;
        tcp.write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = Vec::new();
        // Not everybody closes when asked to: the first words are enough.
        while !is_health(&answer) && answer.len() < LONGEST {
            if tcp.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(answer)
    };
    ask.await.is_ok_and(|answer| is_health(&answer))
}

fn is_health(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.starts_with("HTTP/1.1 ") && text.contains(r#"{"status":""#)
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    fn taken() -> BindError {
        BindError {
            key: "rpc_port",
            port: 8070,
            source: std::io::ErrorKind::AddrInUse.into(),
        }
    }

    #[test]
    fn a_taken_port_is_wrong_unless_a_krane_has_it() {
        assert_eq!(judge(&[], false)[0].state, State::Pass);
        assert_eq!(judge(&[taken()], true)[0].state, State::Pass);
        let found = &judge(&[taken()], false)[0];
        assert_eq!(found.state, State::Fail);
        assert!(found.fix.as_deref().unwrap().contains("8070"), "{found:?}");
    }
}
