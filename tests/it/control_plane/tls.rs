//! TLS: whom to trust, and what happens when one side does not speak it.

use std::io::Write as _;

use krane_control_plane::ControlPlaneAccess;
use krane_ports::{ControlPlane as _, RpcFailure, RpcFailureKind};
use krane_proto::ctrl::v1::HeartbeatResponse;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;

use super::server::Server;
use super::{access, plane};

/// A private authority: its file, and a server's side with a certificate of it for `localhost`.
pub(crate) fn authority(alpn: &[&[u8]]) -> (NamedTempFile, rustls::ServerConfig) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(issuer.pem().as_bytes()).unwrap();

    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    (file, config)
}

fn trusting(url: String, ca: &NamedTempFile) -> ControlPlaneAccess {
    ControlPlaneAccess {
        ca_file: Some(ca.path().to_owned()),
        ..access(url)
    }
}

async fn failure(access: &ControlPlaneAccess) -> RpcFailure {
    let failure = plane(access).heartbeat().await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Transport, "unavailable")
    );
    failure
}

/// aws/network-flow-monitor-agent PR #43, rustls/rustls#2070 (B48): two crypto providers, or none.
#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_configured() {
    let (ca, config) = authority(&[b"h2"]);
    let mut server = Server::start_tls(config).await;
    let url = format!("https://localhost:{}", server.address.port());

    let (answer, ()) = tokio::join!(
        async { plane(&trusting(url.clone(), &ca)).heartbeat().await },
        async { server.call().await.answer(&HeartbeatResponse {}).await }
    );
    answer.unwrap();

    let (other, _) = authority(&[b"h2"]);
    let refused = failure(&trusting(url.clone(), &other)).await;
    assert!(refused.message.contains("control.ca_file"), "{refused}");
    assert!(
        refused.message.contains("invalid peer certificate"),
        "{refused}"
    );
    failure(&access(url)).await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (ca, config) = authority(&[b"h2"]);
    let server = Server::start_tls(config).await;
    let refused = failure(&trusting(format!("https://{}", server.address), &ca)).await;
    assert!(
        refused.message.contains("invalid peer certificate"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_server_without_http2_is_told_apart() {
    for alpn in [&[][..], &[b"http/1.1".as_slice()][..]] {
        let (ca, config) = authority(alpn);
        let server = Server::start_tls(config).await;
        let url = format!("https://localhost:{}", server.address.port());
        let refused = failure(&trusting(url, &ca)).await;
        assert!(
            refused.message.contains("does not offer HTTP/2"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn tls_with_a_plain_server_and_the_other_way_round_fail_clearly() {
    let (ca, config) = authority(&[b"h2"]);
    let plain = Server::start().await;
    let url = format!("https://localhost:{}", plain.address.port());
    let refused = failure(&trusting(url, &ca)).await;
    assert!(refused.message.contains("http:// without TLS"), "{refused}");

    let secure = Server::start_tls(config).await;
    let failure = plane(&access(secure.url())).heartbeat().await.unwrap_err();
    assert_eq!(failure.kind, RpcFailureKind::Transport, "{failure}");
}
