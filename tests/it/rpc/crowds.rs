//! Many senders that mean no good, and one that wants an answer. Each has an address of its own.

use std::net::Ipv4Addr;
use std::time::Duration;

use krane_server::serve::Patience;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::windows::Mean;
use super::{ANSWER, Server, message, post, post_body};
use crate::health::{PATIENT, ask, get, read_to_close};

/// A connection from one of the many addresses of this machine.
pub(super) async fn connect_from(sender: u8, server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let from = Ipv4Addr::new(127, 0, 1, sender);
    socket.bind((from, 0).into()).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// All but the last byte of a request with a blob of this size.
async fn half_a_request(sender: u8, server: &Server, size: usize) -> TcpStream {
    let mut stream = connect_from(sender, server).await;
    let whole = post_body(&format!(r#"{{"encryptedBlob":"{}"}}"#, "A".repeat(size)));
    let half = &whole.as_bytes()[..whole.len() - 1];
    stream.write_all(half).await.unwrap();
    stream
}

pub(super) async fn is_served(sender: u8, server: &Server) {
    let mut stream = connect_from(sender, server).await;
    let answer = ask(&mut stream, &post("d_1")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(r#""ENVIRONMENT":"env_1""#),
        "{answer}"
    );
}

/// A call over HTTP/2 whose message is still to be sent.
struct Begun {
    answer: h2::client::ResponseFuture,
    body: h2::SendStream<bytes::Bytes>,
    _connection: JoinSet<Result<(), h2::Error>>,
}

async fn begin(server: &Server, content_type: &str) -> Begun {
    let (client, connection) = h2::client::handshake(server.connect().await).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let mut client = client.ready().await.unwrap();
    let request = http::Request::post(format!("http://krane{}", super::DECRYPT))
        .header("content-type", content_type)
        .body(())
        .unwrap();
    let (answer, body) = client.send_request(request, false).unwrap();
    Begun {
        answer,
        body,
        _connection: tasks,
    }
}

/// More than there is room for calls: a request that has not arrived is no call.
#[tokio::test]
async fn those_who_do_not_send_to_the_end_keep_nobody_out() {
    let server = Server::start(PATIENT).await;
    let mut halves = Vec::new();
    for sender in 1..=4 {
        for _ in 0..128 {
            halves.push(half_a_request(sender, &server, 16).await);
        }
        let mut one_more = half_a_request(sender, &server, 16).await;
        let answer = String::from_utf8(read_to_close(&mut one_more).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            answer.contains("too much is being sent at once"),
            "{answer}"
        );
    }
    is_served(7, &server).await;
    drop(halves);
    // Its places are free again once the server has seen that they are gone.
    let again = async {
        loop {
            let mut stream = connect_from(1, &server).await;
            if ask(&mut stream, &post("d_1"))
                .await
                .starts_with("HTTP/1.1 200")
            {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_one_sender_makes_krane_keep_in_memory_is_bounded() {
    let server = Server::start(PATIENT).await;
    let large = 2 * 1024 * 1024 - 1_024;
    let mut answers = JoinSet::new();
    for _ in 0..3 {
        let mut stream = half_a_request(1, &server, large).await;
        answers.spawn(async move { String::from_utf8(read_to_close(&mut stream).await).unwrap() });
    }
    // Two have room; which of the three does not is theirs to find out.
    let refused = answers.join_next().await.unwrap().unwrap();
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains("too much is being sent at once"),
        "{refused}"
    );
    is_served(2, &server).await;
    assert!(answers.try_join_next().is_none(), "the two others go on");
}

/// (X2): those who send what is never a whole request have the bytes of all, and not those that are each one's own.
#[tokio::test]
async fn twelve_senders_of_the_largest_requests_leave_bytes_for_everybody_else() {
    let server = Server::start(PATIENT).await;
    // Two of the largest, each without its last byte.
    let large = 2 * 1024 * 1024 - r#"{"encryptedBlob":""}"#.len();
    let mut halves = Vec::new();
    for sender in 1..=12 {
        let own = [
            half_a_request(sender, &server, large).await,
            half_a_request(sender, &server, large).await,
        ];
        has_no_more(sender, &server, &own).await;
        halves.extend(own);
    }
    for sender in 101..=116 {
        is_served(sender, &server).await;
    }
}

/// Waits until a sender has all that it gets: it is refused more, or what it sends was.
async fn has_no_more(sender: u8, server: &Server, halves: &[TcpStream]) {
    let mut answer = [0; 64];
    while !halves.iter().any(|it| it.try_read(&mut answer).is_ok()) {
        let mut stream = connect_from(sender, server).await;
        let answer = ask(&mut stream, &post("d_1")).await;
        if answer.starts_with("HTTP/1.1 503") {
            break;
        }
    }
}

/// (X2): nor do they have all the places of requests that are being sent.
#[tokio::test]
async fn thirty_two_senders_of_half_requests_leave_places_for_everybody_else() {
    let server = Server::start(PATIENT).await;
    let mut halves = Vec::new();
    for sender in 1..=32 {
        halves.push(Mean::connect(&server, sender, 65_535).await);
        let mean = halves.last_mut().unwrap();
        for _ in 0..128 {
            mean.begin_a_call().await;
        }
        mean.is_seen().await;
    }
    for sender in 101..=116 {
        is_served(sender, &server).await;
    }
}

/// A probe needs a connection, whoever else has many.
#[tokio::test]
async fn one_sender_does_not_take_all_connections() {
    let server = Server::start(PATIENT).await;
    let mut idle = Vec::new();
    for _ in 0..256 {
        idle.push(connect_from(1, &server).await);
    }
    let mut one_more = connect_from(1, &server).await;
    assert!(read_to_close(&mut one_more).await.is_empty());
    let mut probe = connect_from(2, &server).await;
    let answer = ask(&mut probe, &get("/health/live")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_connection_of_http_2_without_requests_is_sent_away_and_a_busy_one_is_not() {
    let patience = Patience {
        header: Duration::from_millis(200),
        ..PATIENT
    };
    let server = Server::start(patience).await;
    let mut busy = begin(&server, "application/proto").await;
    let message = prost::Message::encode_to_vec(&message("wait"));
    busy.body.send_data(message.into(), true).unwrap();
    server.entered(1).await;

    let (idle, connection) = h2::client::handshake(server.connect().await).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), connection).await;
    ended.expect("it is sent away").unwrap();
    drop(idle);
    server.desk.released.add_permits(1);
    assert_eq!(busy.answer.await.unwrap().status(), 200);
}

/// Who goes away in the middle of a message is no defect of krane's.
#[tokio::test]
async fn a_message_of_grpc_that_is_broken_off_counts_as_canceled() {
    let server = Server::start(PATIENT).await;
    let mut call = begin(&server, "application/grpc").await;
    call.body
        .send_data(b"\0\0\0\0\x10half".as_slice().into(), false)
        .unwrap();
    // It has been read when an answer to a later request has come.
    is_served(2, &server).await;
    call.body.send_reset(h2::Reason::CANCEL);
    let counted = async {
        while !server.metrics().contains("code=\"canceled\"") {
            is_served(2, &server).await;
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(5), counted).await;
    assert!(counted.is_ok(), "{}", server.metrics());
    assert!(!server.metrics().contains("code=\"internal\""));
}

/// A probe asks once; whoever watches takes a place.
#[tokio::test]
async fn watches_of_health_are_bounded_and_probes_are_not() {
    let server = Server::start(PATIENT).await;
    let mut client = HealthClient::new(server.channel().await);
    let mut watches = Vec::new();
    let refused = loop {
        match client.watch(HealthCheckRequest::default()).await {
            Ok(watch) => watches.push(watch.into_inner()),
            Err(refused) => break refused,
        }
        assert!(watches.len() <= 128, "without bound");
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert_eq!(watches.len(), 128);
    client.check(HealthCheckRequest::default()).await.unwrap();
    // Secrets have a room of their own.
    let mut stream = server.connect().await;
    assert!(ask(&mut stream, &post("d_1")).await.ends_with(ANSWER));
}
