//! A collector of traces that only keeps what it is sent.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The collector; it ends with this.
pub(super) struct Collector {
    address: String,
    kept: Arc<Mutex<Vec<u8>>>,
    _serving: JoinSet<()>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
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
        Self {
            address,
            kept,
            _serving: serving,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that came, as text: names and values of attributes are readable in it.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept.lock()).into_owned()
    }
}

type Frames =
    StreamBody<futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// An empty message of gRPC, and that all is well.
async fn keep(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<u8>>>,
) -> Result<Response<Frames>, hyper::Error> {
    let message = request.into_body().collect().await?.to_bytes();
    kept.lock().extend_from_slice(&message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = vec![
        Ok(Frame::data(Bytes::from_static(&[0; 5]))),
        Ok(Frame::trailers(trailers)),
    ];
    let mut response = Response::new(StreamBody::new(futures::stream::iter(frames)));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    Ok(response)
}
