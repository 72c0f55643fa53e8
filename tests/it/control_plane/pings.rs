//! Pings: a link that died is noticed, a server that complains gets fewer.

use std::net::SocketAddr;
use std::time::Duration;

use krane_control_plane::{GrpcControlPlane, Timing};
use krane_ports::ControlPlane as _;
use krane_proto::ctrl::v1::{ReportDeploymentStatusResponse, WatchDeploymentsRequest};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::frames::{PING, accept, frame, goaway};
use super::server::Server;
use super::{Events, access, delete, plane, report, within};

/// Forwards bytes until told to stop, and then keeps the sockets without a word.
struct Proxy {
    address: SocketAddr,
    frozen: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, _) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let signal = frozen.clone();
        tasks.spawn(async move {
            let mut links = JoinSet::new();
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                // Only links that were there are frozen; new ones work.
                let mut frozen = signal.subscribe();
                links.spawn(async move {
                    let mut far = TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => return,
                        _ = frozen.changed() => {}
                    }
                    std::future::pending::<()>().await;
                });
            }
        });
        Self {
            address,
            frozen,
            _tasks: tasks,
        }
    }

    fn freeze(&self) {
        self.frozen.send_replace(true);
    }
}

/// connectrpc/connect-es#463, bvis/aegis-hass PR #247, restatedev/restate PR #3816 (B38): the link
/// drops silently, the reader waits for ever.
#[tokio::test]
async fn a_dead_link_is_noticed_within_twenty_seconds() {
    let mut server = Server::start().await;
    let proxy = Proxy::start(server.address).await;
    let plane = plane(&access(format!("http://{}", proxy.address)));
    let mut silent = Events::of(&plane, 11).await;
    let (call, ()) = tokio::join!(server.call(), silent.opened());
    let mut spoken = Events::of(&plane, 11).await;
    let ((), stream) = tokio::join!(spoken.opened(), async {
        let mut stream = server.call().await.open();
        stream.message(delete("one", 11)).await;
        stream
    });
    spoken.state().await;

    let begin = Instant::now();
    proxy.freeze();
    let report = report();
    let (silent_end, spoken_end, answer) = tokio::join!(
        silent.ended(),
        spoken.ended(),
        // The call in flight is sent again over the new connection.
        async {
            let (answer, ()) = tokio::join!(plane.report(&report), async {
                let call = server.call().await;
                assert_eq!(call.connection, 2);
                call.answer(&ReportDeploymentStatusResponse {}).await;
            });
            answer
        }
    );
    let noticed = begin.elapsed();
    assert!(
        noticed < Duration::from_secs(20),
        "noticed after {noticed:?}"
    );
    assert_eq!(silent_end.code, "unavailable", "{}", silent_end.message);
    assert_ne!(spoken_end.code, "ok");
    assert_eq!(answer, Ok(()));
    drop((call, stream));

    let mut events = Events::of(&plane, 11).await;
    let ((), call) = tokio::join!(events.opened(), server.call());
    assert_eq!(
        call.message::<WatchDeploymentsRequest>().version_last_seen,
        11
    );
    let mut stream = call.open();
    stream.message(delete("one", 12)).await;
    assert_eq!(events.state().await.version, 12);
}

/// A server that answers pings and says when they came; the first connection is told off.
async fn pinged(listener: TcpListener, pings: mpsc::Sender<(usize, Instant)>) {
    const ENHANCE_YOUR_CALM: u8 = 11;
    for connection in 1.. {
        let mut socket = accept(&listener).await;
        let mut count = 0;
        while let Some((kind, payload)) = frame(&mut socket).await {
            if kind != PING {
                continue;
            }
            count += 1;
            let _ = pings.send((connection, Instant::now())).await;
            let mut answer = vec![0, 0, 8, PING, 1, 0, 0, 0, 0];
            answer.extend(payload);
            socket.write_all(&answer).await.unwrap();
            if connection == 1 && count == 2 {
                let complaint = goaway(ENHANCE_YOUR_CALM, b"too_many_pings");
                socket.write_all(&complaint).await.unwrap();
                break;
            }
        }
    }
}

async fn open(plane: &GrpcControlPlane) -> Events {
    let mut events = Events::of(plane, 0).await;
    events.opened().await;
    events
}

#[tokio::test]
async fn pings_become_fewer_when_the_server_complains() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut access = access(format!("http://{}", listener.local_addr().unwrap()));
    let interval = Duration::from_millis(400);
    access.timing = Timing {
        open: Duration::from_millis(10),
        ping_interval: interval,
        longest_ping_interval: interval * 3 / 2,
        ..Timing::default()
    };
    let plane = plane(&access);
    let (pings_tx, mut pings) = mpsc::channel(100);
    let mut tasks = JoinSet::new();
    tasks.spawn(pinged(listener, pings_tx));

    let mut events = open(&plane).await;
    let first = within(pings.recv()).await.unwrap().1;
    let second = within(pings.recv()).await.unwrap().1;
    assert!(second - first >= interval * 9 / 10);
    let end = events.ended().await;
    assert_eq!(end.code, "resource_exhausted");
    assert!(end.message.contains("too_many_pings"), "{}", end.message);

    let _events = open(&plane).await;
    let (connection, first) = within(pings.recv()).await.unwrap();
    let second = within(pings.recv()).await.unwrap().1;
    assert_eq!(connection, 2);
    assert!(
        second - first >= interval * 3 / 2 * 9 / 10,
        "pings after {:?}",
        second - first
    );
}
