//! TLS on the RPC port.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::settings::RpcTls;

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
pub fn server_config(tls: &RpcTls) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_file_iter(&tls.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| {
            if chain.is_empty() {
                Err(pem::Error::NoItemsFound)
            } else {
                Ok(chain)
            }
        })
        .map_err(|source| TlsError::Certificate {
            path: tls.cert.clone(),
            source,
        })?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|source| TlsError::Key {
        path: tls.key.clone(),
        source,
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
