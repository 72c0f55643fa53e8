//! A client of HTTP/2 that sends what no library would.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use tonic::{Code, Status};

use super::{DECRYPT, Server};

/// One connection.
pub(super) struct Peer {
    sender: SendRequest<Full<Bytes>>,
    _connection: JoinSet<()>,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: HeaderMap,
    trailers: HeaderMap,
    pub(super) body: Bytes,
}

impl Peer {
    pub(super) async fn connect(server: &Server) -> Self {
        let stream = TokioIo::new(server.connect().await);
        let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            let _ = connection.await;
        });
        Self {
            sender,
            _connection: tasks,
        }
    }

    pub(super) async fn send(
        &mut self,
        kind: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.begin(kind, headers, body).await
    }

    pub(super) async fn send_to(
        &mut self,
        path: &str,
        kind: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.begin_to(path, kind, headers, body).await
    }

    /// Sends at once; the answer is another thing to wait for.
    pub(super) fn begin(
        &mut self,
        kind: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> impl Future<Output = Answer> + Send + 'static {
        self.begin_to(DECRYPT, kind, headers, body)
    }

    fn begin_to(
        &mut self,
        path: &str,
        kind: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> impl Future<Output = Answer> + Send + 'static {
        let mut request = Request::post(format!("http://krane{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body));
        let request = request.header("content-type", kind).body(body).unwrap();
        let response = self.sender.send_request(request);
        async move {
            let (parts, body) = response.await.unwrap().into_parts();
            let body = body.collect().await.unwrap();
            Answer {
                status: parts.status.as_u16(),
                headers: parts.headers,
                trailers: body.trailers().cloned().unwrap_or_default(),
                body: body.to_bytes(),
            }
        }
    }
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The code of a gRPC answer.
    pub(super) fn code(&self) -> Code {
        let status = Status::from_header_map(&self.headers);
        let status = status.or_else(|| Status::from_header_map(&self.trailers));
        status.unwrap().code()
    }
}

/// A message of gRPC with this flag.
pub(super) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag], &length[..], message].concat()
}
