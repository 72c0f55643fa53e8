//! A collector of traces that only keeps what it is sent.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Outcome;

/// The collector; it ends with this.
pub struct Collector {
    port: u16,
    kept: Arc<Mutex<Vec<u8>>>,
    _serving: JoinSet<()>,
}

impl Collector {
    /// Listens on a free port.
    pub async fn start() -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let all = Arc::clone(&kept);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let all = Arc::clone(&all);
                let service = service_fn(move |request| keep(request, Arc::clone(&all)));
                let served = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                connections.spawn(async {
                    let _ = served.await;
                });
            }
        });
        Ok(Self {
            port,
            kept,
            _serving: serving,
        })
    }

    /// Where spans are sent.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All that came, as text: names and values of attributes are readable in it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept.lock()).into_owned()
    }
}

type Frames = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// An empty message of gRPC, and that all is well.
async fn keep(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<u8>>>,
) -> Result<Response<Frames>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let message = request.into_body().collect().await?.to_bytes();
    {
        let mut kept = kept.lock();
        kept.extend_from_slice(path.as_bytes());
        kept.extend_from_slice(&message);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = vec![
        Ok(Frame::data(Bytes::from_static(&[0; 5]))),
        Ok(Frame::trailers(trailers)),
    ];
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    Ok(response)
}
