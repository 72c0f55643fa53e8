//! A control plane that does exactly what a test says, down to the HTTP/2 frames.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::within;

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What happens to all connections that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disturbance {
    /// GOAWAY without an error: running calls may end, new ones go elsewhere.
    GoAway,
    /// The socket is closed without a word.
    Drop,
}

/// Listens; each request becomes a [`Call`] for the test to answer.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    calls: mpsc::Receiver<Call>,
    disturb: broadcast::Sender<Disturbance>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_at(ANY).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        Self::start_with(address, None).await
    }

    pub(crate) async fn start_tls(config: rustls::ServerConfig) -> Self {
        Self::start_with(ANY, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(address: SocketAddr, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (calls_tx, calls) = mpsc::channel(1000);
        let (disturb, _) = broadcast::channel(16);
        let mut tasks = JoinSet::new();
        let disturbances = disturb.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 1.. {
                let (socket, _) = listener.accept().await.unwrap();
                let (tls, calls) = (tls.clone(), calls_tx.clone());
                let disturbances = disturbances.subscribe();
                connections.spawn(async move {
                    match tls {
                        None => serve(socket, number, calls, disturbances).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(socket).await {
                                serve(stream, number, calls, disturbances).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            calls,
            disturb,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn call(&mut self) -> Call {
        within(self.calls.recv())
            .await
            .expect("the server must be running")
    }

    pub(crate) fn disturb(&self, disturbance: Disturbance) {
        self.disturb
            .send(disturbance)
            .expect("a connection must be there");
    }
}

async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin,
    number: usize,
    calls: mpsc::Sender<Call>,
    mut disturbances: broadcast::Receiver<Disturbance>,
) {
    let Ok(mut connection) = h2::server::Builder::new()
        .max_send_buffer_size(16 << 20)
        .handshake::<_, Bytes>(io)
        .await
    else {
        return;
    };
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            request = connection.accept() => {
                let Some(Ok((request, respond))) = request else { return };
                let calls = calls.clone();
                readers.spawn(async move {
                    if let Some(call) = Call::read(request, respond, number).await {
                        let _ = calls.send(call).await;
                    }
                });
            }
            disturbance = disturbances.recv() => match disturbance {
                Ok(Disturbance::GoAway) => connection.graceful_shutdown(),
                Ok(Disturbance::Drop) | Err(_) => return,
            },
        }
    }
}

/// A request that waits for its answer.
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Which connection it came over, from 1 on.
    pub(crate) connection: usize,
    body: Bytes,
    respond: SendResponse<Bytes>,
}

impl Call {
    async fn read(
        request: Request<h2::RecvStream>,
        respond: SendResponse<Bytes>,
        connection: usize,
    ) -> Option<Self> {
        let (head, mut stream) = request.into_parts();
        let mut body = BytesMut::new();
        while let Some(chunk) = stream.data().await {
            let chunk = chunk.ok()?;
            stream.flow_control().release_capacity(chunk.len()).ok()?;
            body.put(chunk);
        }
        Some(Self {
            path: head.uri.path().to_owned(),
            headers: head.headers,
            connection,
            body: body.freeze(),
            respond,
        })
    }

    /// The request message.
    pub(crate) fn message<M: Message + Default>(&self) -> M {
        M::decode(self.body.slice(5..)).expect("the request must decode")
    }

    /// Answers with one message.
    pub(crate) async fn answer(self, message: &impl Message) {
        let mut stream = self.open();
        stream.message(message.encode_to_vec()).await;
        stream.end(0, "");
    }

    /// Refuses in the headers, as tonic's servers do.
    pub(crate) fn refuse(mut self, code: u8, text: &str) {
        let mut response = grpc_response();
        response.headers_mut().extend(status(code, text));
        let _ = self.respond.send_response(response, true);
    }

    /// Refuses in the headers, with one more of them.
    pub(crate) fn refuse_with(mut self, name: &'static str, value: &'static str) {
        let mut response = grpc_response();
        response.headers_mut().extend(status(9, "no"));
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
        let _ = self.respond.send_response(response, true);
    }

    /// Sends the headers.
    pub(crate) fn open(mut self) -> Stream {
        Stream(self.respond.send_response(grpc_response(), false).unwrap())
    }

    /// Answers as something that is no gRPC server.
    pub(crate) fn http(mut self, response: Response<&'static str>) {
        let (head, body) = response.into_parts();
        let response = Response::from_parts(head, ());
        let mut stream = self
            .respond
            .send_response(response, body.is_empty())
            .unwrap();
        if !body.is_empty() {
            stream
                .send_data(Bytes::from_static(body.as_bytes()), true)
                .unwrap();
        }
    }

    /// Waits until the client gives the call up.
    pub(crate) async fn given_up(mut self) -> Reason {
        within(std::future::poll_fn(|cx| self.respond.poll_reset(cx)))
            .await
            .unwrap()
    }
}

/// An answer that has begun.
pub(crate) struct Stream(SendStream<Bytes>);

impl Stream {
    /// Sends one message.
    pub(crate) async fn message(&mut self, message: impl AsRef<[u8]>) {
        let message = message.as_ref();
        let mut frame = BytesMut::with_capacity(5 + message.len());
        frame.put_u8(0);
        frame.put_u32(u32::try_from(message.len()).unwrap());
        frame.put(message);
        self.raw(frame.freeze()).await;
    }

    /// Sends bytes as they are, as far as the client lets us.
    pub(crate) async fn raw(&mut self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            self.0.reserve_capacity(bytes.len());
            let capacity = std::future::poll_fn(|cx| self.0.poll_capacity(cx));
            let Some(Ok(capacity)) = within(capacity).await else {
                return;
            };
            if self
                .0
                .send_data(bytes.split_to(capacity.min(bytes.len())), false)
                .is_err()
            {
                return;
            }
        }
    }

    /// Ends with a status.
    pub(crate) fn end(self, code: u8, text: &str) {
        self.trailers(status(code, text));
    }

    pub(crate) fn trailers(mut self, trailers: HeaderMap) {
        let _ = self.0.send_trailers(trailers);
    }

    /// Ends without one.
    pub(crate) fn end_without_trailers(mut self) {
        let _ = self.0.send_data(Bytes::new(), true);
    }

    pub(crate) fn reset(mut self, reason: Reason) {
        self.0.send_reset(reason);
    }

    /// Waits until the client gives the stream up.
    pub(crate) async fn given_up(mut self) -> Reason {
        within(std::future::poll_fn(|cx| self.0.poll_reset(cx)))
            .await
            .unwrap()
    }
}

pub(crate) fn status(code: u8, text: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", HeaderValue::from(u16::from(code)));
    headers.insert("grpc-message", HeaderValue::from_str(text).unwrap());
    headers
}

fn grpc_response() -> Response<()> {
    Response::builder()
        .header("content-type", "application/grpc+proto")
        .body(())
        .unwrap()
}
