//! Where the control plane is and whom to trust there, checked before anything connects.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use http::uri::{InvalidUri, InvalidUriParts, PathAndQuery, Scheme};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::reach::HostTls;

/// Why the control plane cannot be addressed; each is a mistake in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The URL does not parse.
    #[error("control.url is no URL: write it like https://control.example.com")]
    Url(#[source] InvalidUri),
    /// The URL does not start with `http://` or `https://`.
    #[error("control.url must start with https:// or, for HTTP/2 without TLS, with http://")]
    Scheme,
    /// The URL names no host.
    #[error("control.url names no host: write it like https://control.example.com")]
    Host,
    /// The URL holds a user name or a password.
    #[error("control.url must not hold a user or password: use control.token")]
    UserInfo,
    /// The URL has a `?`.
    #[error("control.url must not have a query: remove the ? and what follows")]
    Query,
    /// The base URL with a trailing slash removed is no URL.
    #[error("the path of control.url cannot be used")]
    Path(#[source] InvalidUriParts),
    /// TLS cannot name this host.
    #[error("the host of control.url is no name that a certificate can be for")]
    ServerName(#[source] InvalidDnsNameError),
    /// `control.ca_file` cannot be read.
    #[error("control.ca_file {} cannot be read: check that it is there and holds PEM", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// `control.ca_file` holds a certificate that is none.
    #[error("control.ca_file {} holds a certificate that cannot be used", path.display())]
    CaCertificate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// `control.ca_file` holds no certificate.
    #[error("control.ca_file {} holds no certificate: write at least one in PEM", path.display())]
    CaEmpty {
        /// The file.
        path: PathBuf,
    },
    /// The system trusts nobody.
    #[error("the system has no certificate authorities: install them or set control.ca_file")]
    NoRoots,
    /// The TLS library refuses its own settings.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// The checked address of the control plane.
pub(super) struct Endpoint {
    /// Scheme, host and base path, without a trailing slash.
    pub origin: Uri,
    /// How to speak TLS; `None` for `http://`.
    pub tls: Option<Tls>,
}

/// How to speak TLS with the host.
#[derive(Clone)]
pub(super) struct Tls {
    pub config: Arc<ClientConfig>,
    pub server: ServerName<'static>,
}

/// Whether a control plane can be reached at all with this `control.url` and `control.ca_file`.
pub fn check(url: &str, ca_file: Option<&Path>) -> Result<(), EndpointError> {
    Endpoint::new(url, ca_file).map(drop)
}

/// How to speak TLS with the host of this address; nothing for `http://`.
pub fn host_tls(url: &str, ca_file: Option<&Path>) -> Result<Option<HostTls>, EndpointError> {
    let tls = Endpoint::new(url, ca_file)?.tls;
    Ok(tls.map(|Tls { config, server }| (config, server)))
}

impl Endpoint {
    pub(super) fn new(url: &str, ca_file: Option<&Path>) -> Result<Self, EndpointError> {
        let origin = origin(url)?;
        let tls = if origin.scheme() == Some(&Scheme::HTTPS) {
            let host = origin.host().ok_or(EndpointError::Host)?;
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            Some(Tls {
                server: ServerName::try_from(host).map_err(EndpointError::ServerName)?,
                config: Arc::new(client_config(ca_file)?),
            })
        } else {
            None
        };
        Ok(Self { origin, tls })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

fn origin(url: &str) -> Result<Uri, EndpointError> {
    let uri: Uri = url.trim().parse().map_err(EndpointError::Url)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(EndpointError::Scheme);
    }
    if uri.query().is_some() {
        return Err(EndpointError::Query);
    }
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(EndpointError::UserInfo);
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(EndpointError::Host);
    }
    let base = uri.path().trim_end_matches('/');
    let base: PathAndQuery = if base.is_empty() { "/" } else { base }
        .parse()
        .map_err(EndpointError::Url)?;
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(base);
    Uri::from_parts(parts).map_err(EndpointError::Path)
}

fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, EndpointError> {
    let roots = match ca_file {
        Some(path) => roots_of_file(path)?,
        None => roots_of_system()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(EndpointError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn roots_of_file(path: &Path) -> Result<RootCertStore, EndpointError> {
    let unreadable = |source| EndpointError::CaFile {
        path: path.to_owned(),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        roots
            .add(certificate.map_err(unreadable)?)
            .map_err(|source| EndpointError::CaCertificate {
                path: path.to_owned(),
                source,
            })?;
    }
    if roots.is_empty() {
        return Err(EndpointError::CaEmpty {
            path: path.to_owned(),
        });
    }
    Ok(roots)
}

fn roots_of_system() -> Result<RootCertStore, EndpointError> {
    let mut roots = RootCertStore::empty();
    // Some systems ship certificates that nobody can parse; the others are still good.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        Err(EndpointError::NoRoots)
    } else {
        Ok(roots)
    }
}
