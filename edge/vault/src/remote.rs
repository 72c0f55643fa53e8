//! A vault service, asked by the Connect protocol: over HTTP/1.1 where the address is `http://`
//! (the original vault speaks nothing else there), over HTTP/2 or HTTP/1.1 where it is `https://`.
//!
//! One call for all values of a pod. A vault from before that call is asked for each value, several
//! at once; this is remembered for a while.

mod client;
mod failure;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use krane_domain::secret::Secret;
use krane_ports::{Vault, VaultFailure};
use krane_proto::vault::v1::{
    DecryptBulkRequest, DecryptBulkResponse, DecryptRequest, DecryptResponse, LivenessRequest,
    LivenessResponse,
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

pub use client::RemoteSetupError;
use client::{Client, Method};
use failure::Failure;
use krane_settings::SecretSource;

/// Values that are asked for at once where each takes a call.
const CALLS_AT_ONCE: usize = 16;

const LIVENESS: Method = Method::new("/vault.v1.VaultService/Liveness");
const DECRYPT: Method = Method::new("/vault.v1.VaultService/Decrypt");
const DECRYPT_BULK: Method = Method::new("/vault.v1.VaultService/DecryptBulk");

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTiming {
    /// For TCP and TLS.
    pub connect: Duration,
    /// For all values of one call, however many requests it takes.
    pub call: Duration,
    /// For which a vault without the call for many values is not asked for it again.
    pub one_by_one: Duration,
}

impl Default for RemoteTiming {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            call: Duration::from_secs(10),
            one_by_one: Duration::from_mins(10),
        }
    }
}

/// A vault behind an address.
pub struct RemoteVault {
    client: Client,
    timing: RemoteTiming,
    /// Until then the vault is known not to take many values at once.
    one_by_one: Mutex<Option<Instant>>,
}

impl RemoteVault {
    /// Checks the address and reads the authorities of the system if it is `https://`; connects to
    /// nothing yet. The token is read anew for every request.
    pub fn new(
        url: &http::Uri,
        token: Option<SecretSource>,
        timing: RemoteTiming,
    ) -> Result<Self, RemoteSetupError> {
        Ok(Self::with_client(
            Client::new(url, token, timing.connect)?,
            timing,
        ))
    }

    /// The same with other authorities than those of the system.
    pub fn trusting(
        url: &http::Uri,
        token: Option<SecretSource>,
        timing: RemoteTiming,
        roots: rustls::RootCertStore,
    ) -> Result<Self, RemoteSetupError> {
        Ok(Self::with_client(
            Client::trusting(url, token, timing.connect, roots)?,
            timing,
        ))
    }

    fn with_client(client: Client, timing: RemoteTiming) -> Self {
        Self {
            client,
            timing,
            one_by_one: Mutex::default(),
        }
    }

    /// Whether somebody is there who says that he is a vault and well. Needs no token.
    pub async fn liveness(&self) -> Result<(), VaultFailure> {
        self.within(async {
            let answer: LivenessResponse = self.client.call(LIVENESS, &LivenessRequest {}).await?;
            if answer.status == "ok" {
                Ok(())
            } else {
                Err(Failure::not_well())
            }
        })
        .await
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, VaultFailure> {
        let limit = self.timing.call;
        match timeout(limit, call).await {
            Ok(result) => result.map_err(VaultFailure::from),
            Err(_) => Err(Failure::timed_out(limit).into()),
        }
    }

    async fn decrypt_many(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, Failure> {
        if !self.is_one_by_one() {
            match self.at_once(key_ring, items).await {
                Err(failure) if failure.is_unimplemented() => {}
                result => return result,
            }
        }
        let texts = self.one_by_one(key_ring, items).await;
        // Only a vault that does take single values is known to be an old one: a proxy without a
        // vault behind it answers alike.
        let until = texts
            .is_ok()
            .then(|| Instant::now() + self.timing.one_by_one);
        let is_gone = texts.as_ref().is_err_and(Failure::is_unimplemented);
        let mut known = self.one_by_one.lock();
        if is_gone {
            *known = None;
        } else if known.is_none() {
            *known = until;
        }
        texts
    }

    fn is_one_by_one(&self) -> bool {
        let mut until = self.one_by_one.lock();
        if until.is_some_and(|until| Instant::now() >= until) {
            *until = None;
        }
        until.is_some()
    }

    async fn at_once(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, Failure> {
        let request = DecryptBulkRequest {
            keyring: key_ring.to_owned(),
            items: items.clone().into_iter().collect(),
        };
        let answer: DecryptBulkResponse = self.client.call(DECRYPT_BULK, &request).await?;
        let texts: BTreeMap<_, _> = answer
            .items
            .into_iter()
            .map(|(name, text)| (name, Secret::new(text)))
            .collect();
        if texts.keys().eq(items.keys()) {
            Ok(texts)
        } else {
            Err(Failure::other_names())
        }
    }

    async fn one_by_one(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, Failure> {
        let calls: Vec<_> = items
            .iter()
            .map(|(name, encrypted)| self.one(key_ring, name, encrypted))
            .collect();
        // The first failure drops the calls that are still running.
        stream::iter(calls)
            .buffer_unordered(CALLS_AT_ONCE)
            .try_collect()
            .await
    }

    async fn one(
        &self,
        key_ring: &str,
        name: &str,
        encrypted: &str,
    ) -> Result<(String, Secret), Failure> {
        let request = DecryptRequest {
            keyring: key_ring.to_owned(),
            encrypted: encrypted.to_owned(),
        };
        let answer = self.client.call(DECRYPT, &request).await;
        let answer: DecryptResponse = answer.map_err(|failure| failure.about(name))?;
        Ok((name.to_owned(), Secret::new(answer.plaintext)))
    }
}

impl fmt::Debug for RemoteVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteVault")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Vault for RemoteVault {
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure> {
        if items.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.within(self.decrypt_many(key_ring, items)).await
    }
}
