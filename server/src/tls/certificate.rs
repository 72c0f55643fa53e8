//! A certificate and its key, read again when their files change.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use krane_settings::RpcTls;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::TlsError;

/// Between two looks at the files.
const LOOK_AFTER: Duration = Duration::from_secs(5);
/// Bytes of the longest file: more is no certificate.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The certificate of now. While the files cannot be used, the last good one stays.
pub(super) struct Certificate {
    tls: RpcTls,
    provider: Arc<CryptoProvider>,
    last: Mutex<Last>,
}

struct Last {
    good: Arc<CertifiedKey>,
    /// What it was made of: a rotation may keep time stamp and length.
    content: Content,
    looked: Instant,
    /// Whether the last look failed, so that one failure is one log line.
    failed: bool,
}

#[derive(PartialEq, Eq)]
struct Content {
    chain: Zeroizing<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
}

impl Certificate {
    pub(super) fn read(tls: RpcTls, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let content = Content::read(&tls)?;
        let last = Last {
            good: content.parse(&tls, &provider)?,
            content,
            looked: Instant::now(),
            failed: false,
        };
        Ok(Self {
            tls,
            provider,
            last: Mutex::new(last),
        })
    }

    fn current(&self, now: Instant) -> Arc<CertifiedKey> {
        let mut last = self.last.lock();
        if now.saturating_duration_since(last.looked) >= LOOK_AFTER {
            last.looked = now;
            self.look(&mut last);
        }
        Arc::clone(&last.good)
    }

    fn look(&self, last: &mut Last) {
        let found = Content::read(&self.tls).and_then(|content| {
            if content == last.content {
                return Ok(None);
            }
            let good = content.parse(&self.tls, &self.provider)?;
            Ok(Some((content, good)))
        });
        match found {
            Ok(None) => last.failed = false,
            Ok(Some((content, good))) => {
                tracing::info!(path = %self.tls.cert.display(), "TLS certificate was re-read");
                (last.content, last.good, last.failed) = (content, good, false);
            }
            Err(error) => {
                if !last.failed {
                    tracing::warn!(
                        %error,
                        "TLS files cannot be used, the last good certificate stays in use"
                    );
                }
                last.failed = true;
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current(Instant::now()))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.tls.cert.display())
    }
}

impl Content {
    fn read(tls: &RpcTls) -> Result<Self, TlsError> {
        Ok(Self {
            chain: read(&tls.cert).map_err(|source| of_certificate(tls, source))?,
            key: read(&tls.key).map_err(|source| of_key(tls, source))?,
        })
    }

    fn parse(
        &self,
        tls: &RpcTls,
        provider: &CryptoProvider,
    ) -> Result<Arc<CertifiedKey>, TlsError> {
        let chain = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<Vec<_>, _>>()
            .and_then(|chain| {
                if chain.is_empty() {
                    Err(pem::Error::NoItemsFound)
                } else {
                    Ok(chain)
                }
            })
            .map_err(|source| of_certificate(tls, source))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|source| of_key(tls, source))?;
        let pair = CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Pair)?;
        Ok(Arc::new(pair))
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, pem::Error> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)
        .and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(pem::Error::Io)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(pem::Error::Io(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

fn of_certificate(tls: &RpcTls, source: pem::Error) -> TlsError {
    TlsError::Certificate {
        path: tls.cert.clone(),
        source,
    }
}

fn of_key(tls: &RpcTls, source: pem::Error) -> TlsError {
    TlsError::Key {
        path: tls.key.clone(),
        source,
    }
}
