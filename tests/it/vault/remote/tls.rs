//! A vault behind TLS: over HTTP/2 where it speaks it, else over HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use krane_ports::{Vault as _, VaultFailureKind};
use krane_proto::vault::v1::DecryptBulkResponse;
use krane_vault::{RemoteTiming, RemoteVault};
use prost::Message as _;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::super::items;
use crate::control_plane::tls::authority;

/// Serves one connection after the other; tells the version of each request.
async fn serve(listener: TcpListener, tls: TlsAcceptor, versions: mpsc::Sender<Version>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let Ok(stream) = tls.accept(socket).await else {
            continue;
        };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let versions = versions.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let versions = versions.clone();
            async move {
                versions.send(request.version()).await.unwrap();
                let texts = DecryptBulkResponse {
                    items: [("A".to_owned(), "plain".to_owned())].into(),
                };
                let mut response = Response::new(Full::new(Bytes::from(texts.encode_to_vec())));
                let kind = http::HeaderValue::from_static("application/proto");
                response
                    .headers_mut()
                    .insert(http::header::CONTENT_TYPE, kind);
                Ok::<_, Infallible>(response)
            }
        });
        let stream = TokioIo::new(stream);
        let _ = if is_http2 {
            let server = http2::Builder::new(TokioExecutor::new());
            server.serve_connection(stream, answer).await
        } else {
            http1::Builder::new().serve_connection(stream, answer).await
        };
    }
}

#[tokio::test]
async fn the_newest_version_that_both_speak_is_spoken() {
    let http2 = &[b"h2".as_slice(), b"http/1.1"][..];
    for (alpn, expected) in [
        (http2, Version::HTTP_2),
        (&[b"http/1.1".as_slice()], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let (ca, config) = authority(alpn);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (versions, mut seen) = mpsc::channel(10);
        let mut task = JoinSet::new();
        task.spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            versions,
        ));
        let url = format!("https://localhost:{port}").parse().unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(ca.path()).unwrap())
            .unwrap();

        let vault = RemoteVault::trusting(&url, None, RemoteTiming::default(), roots).unwrap();
        let items = items(&[("A", "x")]);
        for _ in 0..2 {
            assert_eq!(
                vault.decrypt("env", &items).await.unwrap()["A"].expose(),
                "plain"
            );
            assert_eq!(seen.recv().await, Some(expected));
        }
        drop(vault);

        let (other, _) = authority(alpn);
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(other.path()).unwrap())
            .unwrap();
        let distrustful =
            RemoteVault::trusting(&url, None, RemoteTiming::default(), roots).unwrap();
        let failure = distrustful.decrypt("env", &items).await.unwrap_err();
        assert_eq!(failure.kind, VaultFailureKind::Unavailable);
        assert!(
            failure.message.contains("invalid peer certificate"),
            "{failure}"
        );
    }
}
