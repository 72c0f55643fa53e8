//! TLS on the RPC port.

mod certificate;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem;

use certificate::Certificate;
use krane_settings::RpcTls;

/// Why the RPC port cannot serve TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// `rpc.tls.cert` holds no PEM certificate.
    #[error("rpc.tls.cert: {path} holds no PEM certificate chain")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// `rpc.tls.key` holds no PEM key.
    #[error("rpc.tls.key: {path} holds no PEM private key")]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    #[error("rpc.tls.cert and rpc.tls.key cannot be used together")]
    Pair(#[source] rustls::Error),
}

/// A server configuration with the certificate and key of the settings, for HTTP/2 and HTTP/1.1.
///
/// Both files are looked at again from time to time, when somebody connects: a certificate that is
/// renewed needs no restart.
pub fn server_config(tls: &RpcTls) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let certificate = Certificate::read(tls.clone(), Arc::clone(&provider))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
