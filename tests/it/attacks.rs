//! Senders that take what all others need, and the binary: connections, places, memory. They print what they saw;
//! `KRANE_ATTACKED` names another binary than the one just built. There is no cluster, and a vault that is away: krane
//! serves its ports all the same.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests of a real process have a real clock, and print what they measure"
)]

use std::fs;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use krane_testharness::attack::{
    Mean, attacker, binary, connect_from, honest_get, raise_open_files,
};
use krane_testharness::free_ports::free_ports;
use krane_testharness::{Failure, Outcome, eventually, limits};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

const DECRYPT: &str = "/krane.v1.SecretsService/DecryptSecretsBlob";
/// What the service itself answers.
const OPAQUE: &str = "the request cannot be answered";
const PROBES: u8 = 20;
/// What an attack may cost, as docs/dev/bounds.md computes it for each port.
const RPC_MEMORY: u64 = 170 << 20;
const METRICS_MEMORY: u64 = 30 << 20;

/// One at a time: they measure memory, and take all ports of this machine that they can.
static ALONE: Mutex<()> = Mutex::const_new(());

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: \"http://127.0.0.1:9\"}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
";

/// krane as a process, killed when dropped.
struct Attacked {
    child: Child,
    rpc_port: u16,
    metrics_port: u16,
    _folder: TempDir,
}

impl Attacked {
    async fn start() -> Outcome<Self> {
        raise_open_files()?;
        let folder = TempDir::new()?;
        let [rpc_port, metrics_port] = free_ports()?;
        let (config, kubeconfig) = (folder.path().join("krane.toml"), folder.path().join("kube"));
        let away = "http://127.0.0.1:9";
        let text = format!(
            "region = \"r\"\nplatform = \"p\"\nrpc_port = {rpc_port}\n\
             [control]\nurl = \"{away}\"\ntoken = \"t\"\n[vault]\nurl = \"{away}\"\ntoken = \"t\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n\
             [observability.metrics]\nprometheus_port = {metrics_port}\n"
        );
        fs::write(&config, text)?;
        fs::write(&kubeconfig, KUBECONFIG)?;
        // As a pod is often started.
        let child = Command::new("/bin/sh")
            .args(["-c", "ulimit -Sn 1024 && exec \"$0\" \"$@\""])
            .arg(binary(env!("CARGO_BIN_EXE_krane")))
            .arg("run")
            .arg("--config")
            .arg(config)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log"))?)
            .kill_on_drop(true)
            .spawn()?;
        eventually("it is up", limits::SHORT, async || {
            let status = honest_get(1, rpc_port, "/health/live").await;
            (status == Some(200))
                .then_some(())
                .ok_or_else(|| format!("{status:?}"))
        })
        .await?;
        Ok(Self {
            child,
            rpc_port,
            metrics_port,
            _folder: folder,
        })
    }

    /// Soft and hard limit on open files.
    fn open_files(&self) -> Outcome<(String, String)> {
        let id = self.child.id().ok_or_else(|| Failure::new("it ended"))?;
        let limits = fs::read_to_string(format!("/proc/{id}/limits"))?;
        let line = limits.lines().find(|it| it.starts_with("Max open files"));
        let mut numbers = line.unwrap_or_default().split_whitespace().skip(3);
        let mut next = || numbers.next().unwrap_or_default().to_owned();
        Ok((next(), next()))
    }

    fn resident_bytes(&self) -> Outcome<u64> {
        let id = self.child.id().ok_or_else(|| Failure::new("it ended"))?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kibibytes
            .map(|kibibytes| kibibytes * 1024)
            .ok_or_else(|| Failure::new("no VmRSS"))
    }
}

/// How many probes are answered, each from an address of its own.
async fn probes_answered(port: u16, path: &str) -> usize {
    let mut answered = 0;
    for number in 1..=PROBES {
        answered += usize::from(honest_get(number, port, path).await == Some(200));
    }
    answered
}

/// Until memory has not grown for a while, which is what it costs.
async fn settled(agent: &Attacked) -> Outcome<u64> {
    let (mut most, mut same) = (agent.resident_bytes()?, 0);
    while same < 4 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = agent.resident_bytes()?;
        same = if now > most + (1 << 20) { 0 } else { same + 1 };
        most = most.max(now);
    }
    Ok(most)
}

/// (X2): nothing was accepted any more, no probe was answered, and krane was restarted in a loop.
#[tokio::test(flavor = "multi_thread")]
async fn senders_with_all_connections_do_not_keep_probes_out() -> Outcome {
    let _alone = ALONE.lock().await;
    let agent = Attacked::start().await?;
    let (port, before) = (agent.rpc_port, agent.resident_bytes()?);
    let mut open = Vec::new();
    for sender in 1..=16 {
        for _ in 0..256 {
            // A request that never ends: the connection is not idle.
            if let Ok(mut stream) = connect_from(attacker(sender), port).await {
                let _ = stream.write_all(b"POST /krane HTTP/1.1\r\nhost: k").await;
                open.push(stream);
            }
        }
    }
    let answered = probes_answered(port, "/health/live").await;
    println!(
        "X2: {} connections of 16 senders; {answered} of {PROBES} probes answered; RSS {} -> {} MiB",
        open.len(),
        before >> 20,
        settled(&agent).await? >> 20
    );
    let (soft, hard) = agent.open_files()?;
    assert_eq!((answered, &soft), (usize::from(PROBES), &hard));
    drop(open);

    let mut half = Vec::new();
    for sender in 1..=32 {
        let mut mean = Mean::connect(attacker(sender), port).await?;
        for _ in 0..128 {
            mean.begin(DECRYPT)?;
        }
        half.push(mean);
    }
    let body = vec![b'x'; 2 * 1024 * 1024 - 1];
    let head = format!(
        "POST {DECRYPT} HTTP/1.1\r\nhost: krane\r\ncontent-type: application/proto\r\ncontent-length: {}\r\n\r\n",
        body.len() + 1
    );
    let mut large = Vec::new();
    for sender in 101..=112 {
        for _ in 0..2 {
            let mut stream = connect_from(attacker(sender), port).await?;
            stream.write_all(head.as_bytes()).await?;
            // Those that are refused are closed in the middle.
            let _ = tokio::time::timeout(Duration::from_secs(2), stream.write_all(&body)).await;
            large.push(stream);
        }
    }
    let mut honest = Vec::new();
    for number in 1..=PROBES {
        honest.push(honest_call(number, port).await);
    }
    let refused = honest
        .iter()
        .filter(|answer| !answer.as_ref().is_some_and(|it| it.contains(OPAQUE)))
        .count();
    let memory = settled(&agent).await?;
    println!(
        "X2: 32 x 128 half-sent requests and 24 of 2 MiB: {refused} of {PROBES} honest calls refused; RSS {} MiB",
        memory >> 20
    );
    assert_eq!(refused, 0, "{honest:?}");
    assert!(memory < before + RPC_MEMORY, "{memory}");
    Ok(())
}

/// The status of a small call. Without a cluster it is 503, with words; one for want of room has others, or none.
async fn honest_call(number: u8, port: u16) -> Option<String> {
    let exchange = async {
        let from = Ipv4Addr::new(127, 0, 2, number);
        let mut stream = connect_from(from, port).await?;
        let request = format!(
            "POST {DECRYPT} HTTP/1.1\r\nhost: krane\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
             connection: close\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, Failure>(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(2), exchange).await;
    answer.ok()?.ok()
}

/// (X3): each stream kept a rendering of its own, and 256 MiB were gone.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_not_taken_cost_no_more_memory_than_is_computed() -> Outcome {
    let _alone = ALONE.lock().await;
    let agent = Attacked::start().await?;
    for (port, path, bound) in [
        (agent.metrics_port, "/metrics", METRICS_MEMORY),
        (agent.rpc_port, "/health/ready", RPC_MEMORY),
    ] {
        let before = agent.resident_bytes()?;
        let (mut mean, mut asked) = (Vec::new(), 0_usize);
        for sender in 1..=16 {
            for _ in 0..8 {
                let Ok(mut connection) = Mean::connect(attacker(sender), port).await else {
                    continue;
                };
                for _ in 0..64 {
                    asked += usize::from(connection.get(path).unwrap_or(false));
                }
                mean.push(connection);
            }
        }
        let most = settled(&agent).await?;
        let answered = probes_answered(port, "/health/live").await;
        println!(
            "X3: {asked} times {path} on {} connections of 16 senders without window; RSS {} -> {} MiB; {answered} of {PROBES} \
             probes answered",
            mean.len(),
            before >> 20,
            most >> 20
        );
        assert!(most < before + bound, "{path}: {most}");
        assert_eq!(answered, usize::from(PROBES), "{path}");
        drop(mean);
    }
    Ok(())
}
