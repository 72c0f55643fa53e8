//! What happens to the connection under the calls: shared, lost, replaced.

use std::sync::Arc;

use futures::future::join_all;
use krane_control_plane::CallObserver;
use krane_ports::{ControlPlane as _, RpcFailureKind};
use krane_proto::ctrl::v1::{
    HeartbeatResponse, ReportDeploymentStatusResponse, WatchDeploymentsRequest,
};
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::frames::{HEADERS, accept, frame, goaway};
use super::server::{Disturbance, Server};
use super::{Events, access, delete, plane, report, within};

#[tokio::test]
async fn all_calls_and_streams_share_one_connection() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let mut events = Events::of(&plane, 0).await;
    let calls = join_all((0..32).map(|_| plane.heartbeat()));
    let (answers, (), _streams) = tokio::join!(calls, events.opened(), async {
        let mut held = Vec::new();
        for _ in 0..33 {
            let call = server.call().await;
            assert_eq!(call.connection, 1);
            if call.path.ends_with("/Heartbeat") {
                call.answer(&HeartbeatResponse {}).await;
            } else {
                let mut stream = call.open();
                stream.message(delete("one", 1)).await;
                held.push(stream);
            }
        }
        held
    });
    assert!(answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_server_that_comes_back_is_reached_by_the_next_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let plane = plane(&access(format!("http://{address}")));
    for _ in 0..3 {
        let failure = plane.heartbeat().await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.code),
            (RpcFailureKind::Transport, "unavailable")
        );
    }
    let mut server = Server::start_at(address).await;
    let (answer, ()) = tokio::join!(plane.heartbeat(), async {
        server.call().await.answer(&HeartbeatResponse {}).await;
    });
    answer.unwrap();
}

/// Opens three streams and sends five reports, disturbs the connection, and answers what comes
/// over the next one.
async fn check_disturbed(disturbance: Disturbance) {
    let mut server = Server::start().await;
    let plane = Arc::new(plane(&access(server.url())));
    let mut streams = Vec::new();
    for cursor in [5, 6, 7] {
        let mut events = Events::of(&plane, cursor).await;
        let ((), stream) = tokio::join!(events.opened(), async {
            let mut stream = server.call().await.open();
            stream.message(delete("one", cursor + 1)).await;
            stream
        });
        events.state().await;
        streams.push((events, stream));
    }

    let report = report();
    let reports = join_all((0..5).map(|_| plane.report(&report)));
    let (answers, _lost) = tokio::join!(reports, async {
        // A call that is dropped would be reset, which is another case.
        let mut lost = Vec::new();
        for _ in 0..5 {
            let call = server.call().await;
            assert_eq!(call.connection, 1);
            lost.push(call);
        }
        server.disturb(disturbance);
        if matches!(disturbance, Disturbance::GoAway) {
            // What was running may end: the server answers nothing and leaves.
            server.disturb(Disturbance::Drop);
        }
        for _ in 0..5 {
            let call = server.call().await;
            assert_eq!(call.connection, 2, "the second try takes a new connection");
            call.answer(&ReportDeploymentStatusResponse {}).await;
        }
        lost
    });
    for answer in answers {
        assert_eq!(answer, Ok(()), "after {disturbance:?}");
    }

    for (mut events, _stream) in streams {
        let end = events.ended().await;
        assert_ne!(end.code, "ok", "{}", end.message);
    }
    let mut events = Events::of(&plane, 8).await;
    let ((), call) = tokio::join!(events.opened(), server.call());
    assert_eq!(
        (
            call.connection,
            call.message::<WatchDeploymentsRequest>().version_last_seen
        ),
        (2, 8)
    );
}

/// hyperium/hyper#2500, stellar/go-stellar-sdk#573 (B39): a GOAWAY was fatal, or lost what was in
/// flight.
#[tokio::test]
async fn five_reports_survive_a_goaway() {
    check_disturbed(Disturbance::GoAway).await;
    check_disturbed(Disturbance::Drop).await;
}

/// hyperium/hyper#2500 (B39): the server says that it worked on none of the calls.
#[tokio::test]
async fn calls_that_a_goaway_leaves_out_go_over_the_next_connection() {
    let mut server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plane = plane(&access(format!(
        "http://{}",
        listener.local_addr().unwrap()
    )));
    let mut tasks = JoinSet::new();
    let to = server.address;
    tasks.spawn(async move {
        let mut socket = accept(&listener).await;
        for _ in 0..5 {
            while within(frame(&mut socket)).await.unwrap().0 != HEADERS {}
        }
        socket.write_all(&goaway(0, b"")).await.unwrap();
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(to).await.unwrap();
        let _ = copy_bidirectional(&mut near, &mut far).await;
    });
    let report = report();
    let reports = join_all((0..5).map(|_| plane.report(&report)));
    let (answers, ()) = tokio::join!(reports, async {
        for _ in 0..5 {
            server
                .call()
                .await
                .answer(&ReportDeploymentStatusResponse {})
                .await;
        }
    });
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

/// hyperium/hyper#2500 (B39): nothing that runs is cut, what is new goes elsewhere.
#[tokio::test]
async fn a_goaway_alone_ends_no_stream() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let mut events = Events::of(&plane, 0).await;
    let ((), mut stream) = tokio::join!(events.opened(), async {
        let mut stream = server.call().await.open();
        stream.message(delete("one", 1)).await;
        stream
    });
    events.state().await;
    server.disturb(Disturbance::GoAway);

    let mut connection = 1;
    while connection == 1 {
        let (answer, ()) = tokio::join!(plane.heartbeat(), async {
            let call = server.call().await;
            connection = call.connection;
            call.answer(&HeartbeatResponse {}).await;
        });
        answer.unwrap();
    }
    stream.message(delete("one", 2)).await;
    assert_eq!(events.state().await.version, 2);
}

/// A second try is one, not two: a server that always breaks the connection is not stormed.
#[tokio::test]
async fn a_call_is_tried_twice_at_most() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let (answer, _lost) = tokio::join!(plane.heartbeat(), async {
        let mut lost = Vec::new();
        for connection in 1..=2 {
            let call = server.call().await;
            assert_eq!(call.connection, connection);
            lost.push(call);
            server.disturb(Disturbance::Drop);
        }
        lost
    });
    assert_eq!(answer.unwrap_err().kind, RpcFailureKind::Transport);
}

#[derive(Default)]
struct Counted(Mutex<Vec<(&'static str, &'static str)>>);

impl CallObserver for Counted {
    fn call(&self, method: &'static str, code: &'static str) {
        self.0.lock().push((method, code));
    }
}

#[tokio::test]
async fn every_call_and_stream_is_counted_once_at_its_end() {
    let mut server = Server::start().await;
    let counted = Arc::new(Counted::default());
    let mut access = access(server.url());
    access.observer = Arc::clone(&counted) as _;
    let plane = plane(&access);
    let (answer, ()) = tokio::join!(plane.heartbeat(), async {
        server.call().await.answer(&HeartbeatResponse {}).await;
    });
    answer.unwrap();
    let (answer, ()) = tokio::join!(plane.heartbeat(), async {
        server.call().await.refuse(13, "");
    });
    answer.unwrap_err();
    let mut events = Events::of(&plane, 0).await;
    tokio::join!(events.ended(), async {
        server.call().await.refuse(16, "");
    });
    let expected = [
        ("Heartbeat", "ok"),
        ("Heartbeat", "internal"),
        ("WatchDeployments", "unauthenticated"),
    ];
    assert_eq!(*counted.0.lock(), expected);
}
