//! The way to an address, step by step: its name, a connection, TLS. For `krane check`, which says
//! at which step it ends; the adapters themselves only say that it does.

mod validity;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How far the way goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The name has no address.
    Unresolved(String),
    /// Nobody answers there.
    Unconnected {
        /// What the name stands for.
        addresses: Vec<IpAddr>,
        /// What the system said.
        why: String,
    },
    /// Somebody answers, but TLS fails.
    Untrusted {
        /// What the name stands for.
        addresses: Vec<IpAddr>,
        /// Why.
        why: TlsProblem,
    },
    /// Somebody answers.
    Open {
        /// What the name stands for.
        addresses: Vec<IpAddr>,
        /// The certificate; nothing without TLS.
        certificate: Option<Certificate>,
    },
}

/// What TLS fails on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// Nobody who is trusted has signed the certificate.
    UnknownIssuer,
    /// The certificate is for other names.
    WrongName,
    /// It has expired.
    Expired,
    /// It is valid from a later moment on.
    NotYetValid,
    /// The server speaks no HTTP/2.
    NoHttp2,
    /// Anything else, a server without TLS included.
    Other(String),
}

/// A certificate that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The Unix second of its end, if it can be read.
    pub not_after: Option<i64>,
}

/// How to speak TLS with a host.
pub type HostTls = (Arc<ClientConfig>, ServerName<'static>);

/// Goes the way to `url`, each step within `limit`. With `tls` the server must offer what that asks
/// for in ALPN.
pub async fn reach(url: &Uri, tls: Option<HostTls>, limit: Duration) -> Reach {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let default = if tls.is_some() { 443 } else { 80 };
    let port = url.port_u16().unwrap_or(default);
    let places = match timeout(limit, lookup_host((host, port))).await {
        Ok(Ok(places)) => places.collect::<Vec<SocketAddr>>(),
        Ok(Err(error)) => return Reach::Unresolved(error.to_string()),
        Err(_) => return Reach::Unresolved(no_answer(limit)),
    };
    let mut addresses: Vec<IpAddr> = places.iter().map(SocketAddr::ip).collect();
    addresses.dedup();
    if places.is_empty() {
        return Reach::Unresolved("the name has no address".to_owned());
    }
    let tcp = match timeout(limit, TcpStream::connect(&places[..])).await {
        Ok(Ok(tcp)) => tcp,
        Ok(Err(error)) => {
            let why = error.to_string();
            return Reach::Unconnected { addresses, why };
        }
        Err(_) => {
            let why = no_answer(limit);
            return Reach::Unconnected { addresses, why };
        }
    };
    let Some((config, server)) = tls else {
        return Reach::Open {
            addresses,
            certificate: None,
        };
    };
    match timeout(limit, shake_hands(tcp, config, server)).await {
        Ok(Ok(certificate)) => Reach::Open {
            addresses,
            certificate: Some(certificate),
        },
        Ok(Err(why)) => Reach::Untrusted { addresses, why },
        Err(_) => Reach::Untrusted {
            addresses,
            why: TlsProblem::Other(no_answer(limit)),
        },
    }
}

async fn shake_hands(
    tcp: TcpStream,
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
) -> Result<Certificate, TlsProblem> {
    let wanted = config.alpn_protocols.first().cloned();
    let stream = TlsConnector::from(config)
        .connect(server, tcp)
        .await
        .map_err(|error| problem(&error))?;
    let (_, session) = stream.get_ref();
    if wanted.is_some() && session.alpn_protocol() != wanted.as_deref() {
        return Err(TlsProblem::NoHttp2);
    }
    let leaf = session.peer_certificates().and_then(<[_]>::first);
    Ok(Certificate {
        not_after: leaf.and_then(|leaf| validity::not_after(leaf)),
    })
}

fn problem(error: &io::Error) -> TlsProblem {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(why)) => certificate_problem(why),
        Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            TlsProblem::NoHttp2
        }
        Some(error) => TlsProblem::Other(error.to_string()),
        None => TlsProblem::Other(error.to_string()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum of another crate, open to new variants"
)]
fn certificate_problem(why: &CertificateError) -> TlsProblem {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsProblem::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsProblem::NotYetValid
        }
        // An authority of the trusted one's name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            TlsProblem::UnknownIssuer
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsProblem::WrongName
        }
        other => TlsProblem::Other(other.to_string()),
    }
}

fn no_answer(limit: Duration) -> String {
    format!("no answer within {limit:?}")
}
