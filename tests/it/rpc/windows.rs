//! Peers of HTTP/2 that give an answer no window, and answer every PING.

use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use krane_server::serve::Patience;
use prost::Message as _;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use super::crowds::{connect_from, is_served};
use super::raw::framed;
use super::{DECRYPT, Server, message};
use crate::health::PATIENT;

/// What a test waits for something that comes in a tenth of a second.
const LONG: Duration = Duration::from_secs(10);
const IMPATIENT: Patience = Patience {
    write: Duration::from_millis(100),
    take: Duration::from_millis(100),
    ..PATIENT
};
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// A connection whose answers have a window of this many bytes each, and never more.
pub(super) struct Mean {
    client: SendRequest<Bytes>,
    begun: Vec<(ResponseFuture, h2::SendStream<Bytes>)>,
    connection: JoinSet<Result<(), h2::Error>>,
}

impl Mean {
    pub(super) async fn connect(server: &Server, sender: u8, window: u32) -> Self {
        let stream = connect_from(sender, server).await;
        let mut builder = Builder::new();
        let handshake = builder.initial_window_size(window).handshake(stream);
        let (client, connection) = handshake.await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        Self {
            client,
            begun: Vec::new(),
            connection: tasks,
        }
    }

    async fn ready(&mut self) -> &mut SendRequest<Bytes> {
        self.client = self.client.clone().ready().await.unwrap();
        &mut self.client
    }

    /// A call whose message is never sent.
    pub(super) async fn begin_a_call(&mut self) {
        let request = Request::post(format!("http://krane{DECRYPT}"))
            .header("content-type", "application/proto")
            .body(())
            .unwrap();
        let begun = self.ready().await.send_request(request, false).unwrap();
        self.begun.push(begun);
    }

    /// Waits until the server has seen all that was sent.
    pub(super) async fn is_seen(&mut self) {
        let probe = Request::head("http://krane/health/live").body(()).unwrap();
        let (answer, _) = self.ready().await.send_request(probe, true).unwrap();
        // Whatever it is answered: there may be no room for it.
        answer.await.unwrap();
    }

    async fn get(&mut self, path: &str) -> RecvStream {
        let request = Request::get(format!("http://krane{path}"));
        let request = request.body(()).unwrap();
        let (answer, _) = self.ready().await.send_request(request, true).unwrap();
        answer.await.unwrap().into_body()
    }

    /// Calls over gRPC, to the header of the answer.
    async fn call(&mut self, path: &str, message: &[u8]) -> RecvStream {
        let request = Request::post(format!("http://krane{path}"))
            .header("content-type", "application/grpc")
            .body(())
            .unwrap();
        let (answer, mut body) = self.ready().await.send_request(request, false).unwrap();
        body.send_data(framed(0, message).into(), true).unwrap();
        answer.await.unwrap().into_body()
    }
}

/// To the end of an answer, which is its being given up.
async fn is_given_up(mut answer: RecvStream) {
    let end = async { while let Some(Ok(_)) = answer.data().await {} };
    let ended = timeout(LONG, end).await;
    assert!(ended.is_ok(), "the answer is given up");
}

/// (X1): a place goes back when the handler has answered, whether or not its client takes the answer.
#[tokio::test]
async fn sixty_four_senders_that_take_no_answer_do_not_keep_others_out() {
    let server = Server::start(PATIENT).await;
    let wanted = message("d_1").encode_to_vec();
    let mut answers = Vec::new();
    let mut all = Vec::new();
    for sender in 1..=64 {
        let mut mean = Mean::connect(&server, sender, 0).await;
        for _ in 0..16 {
            answers.push(mean.call(DECRYPT, &wanted).await);
        }
        all.push(mean);
    }
    for sender in 101..=116 {
        is_served(sender, &server).await;
    }
}

/// (X1): nothing in hyper or h2 would ever end it, and a timer in its body is not asked.
#[tokio::test]
async fn an_answer_that_gets_no_window_is_given_up_and_its_connection_goes_on() {
    let server = Server::start(IMPATIENT).await;
    let mut mean = Mean::connect(&server, 1, 0).await;
    let plain = mean.get("/health/live").await;
    is_given_up(plain).await;
    let call = mean.call(DECRYPT, &message("d_1").encode_to_vec()).await;
    is_given_up(call).await;
    mean.is_seen().await;
}

/// (X1): with a byte of window hyper hands over all of an answer, and is done with it.
#[tokio::test]
async fn an_answer_that_is_taken_in_part_is_given_up() {
    let server = Server::start(IMPATIENT).await;
    let mut mean = Mean::connect(&server, 1, 1).await;
    let plain = mean.get("/health/live").await;
    is_given_up(plain).await;
    let ended = timeout(LONG, mean.connection.join_next()).await;
    ended.expect("and its connection with it");
    is_served(1, &server).await;
}

/// (X1): a watch has no end, but what it says has to be taken.
#[tokio::test]
async fn a_watch_lives_for_as_long_as_it_is_read() {
    let server = Server::start(IMPATIENT).await;
    let mut honest = HealthClient::new(server.channel().await);
    let watch = honest.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watch = watch.into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);

    let mut mean = Mean::connect(&server, 1, 0).await;
    for _ in 0..3 {
        is_given_up(mean.call(WATCH, &[]).await).await;
    }
    server.shutdown.cancel();
    let last = watch.message().await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
}
