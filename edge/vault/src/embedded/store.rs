//! The bucket with the stored keys. It is only read.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use http::HeaderValue;
use krane_ports::VaultFailure;
use krane_proto::USER_AGENT;
use krane_settings::{S3, SecretSource};
use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    ClientOptions, CredentialProvider, ObjectMeta, ObjectStore, ObjectStoreExt as _, RetryConfig,
};
use secrecy::ExposeSecret as _;
use tokio::time::timeout;
use tonic::Code;

use super::super::{refused, unavailable};
use super::name::ROOT;

/// A stored key has a few hundred bytes; what is longer than this is none.
const LARGEST_OBJECT: u64 = 1 << 20;

/// The bucket cannot be addressed with these settings.
#[derive(Debug, thiserror::Error)]
#[error("vault.s3.url and vault.s3.bucket make no address")]
pub struct StoreSetupError(#[source] object_store::Error);

/// Why an object was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreFailure {
    /// The bucket has no such object.
    NoObject,
    /// There is no such bucket.
    NoBucket,
    /// The store does not take the access key, or it may not read here.
    Denied,
    /// It is too long to be a key.
    TooLong,
    /// No answer, or none that helps: the words say which.
    Away(String),
    /// No complete answer within this time.
    TimedOut(Duration),
}

impl StoreFailure {
    /// In the port's words, about reading `what`.
    pub(super) fn about(self, what: &dyn fmt::Display) -> VaultFailure {
        match self {
            Self::NoObject => refused(
                Code::NotFound,
                format!("{what} is not in the bucket: check vault.s3.bucket, and the key ring"),
            ),
            Self::NoBucket => refused(
                Code::FailedPrecondition,
                "there is no such bucket: check vault.s3.bucket",
            ),
            Self::Denied => refused(
                Code::PermissionDenied,
                "the store refuses the access key: check vault.s3.access_key_id, its secret, and \
                 that it may read and list the bucket",
            ),
            Self::TooLong => refused(
                Code::DataLoss,
                format!("{what} has more than {LARGEST_OBJECT} bytes: it is no stored key"),
            ),
            Self::Away(words) => unavailable(
                Code::Unavailable,
                format!("{what} cannot be read now: {words}"),
            ),
            Self::TimedOut(limit) => unavailable(
                Code::DeadlineExceeded,
                format!("{what} cannot be read now: no complete answer within {limit:?}"),
            ),
        }
    }
}

/// Reads objects, each within a time limit.
#[derive(Clone)]
pub(super) struct KeyStore {
    objects: Arc<dyn ObjectStore>,
    limit: Duration,
}

impl KeyStore {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, limit: Duration) -> Self {
        Self { objects, limit }
    }

    /// A bucket behind an S3 endpoint, addressed by path, with region `auto`.
    pub(super) fn s3(s3: &S3, limit: Duration) -> Result<Self, StoreSetupError> {
        // The HTTP client of the store panics without one. Fails when there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Its own limits are only for what ours does not end: they come later.
        let options = ClientOptions::new()
            .with_allow_http(true)
            .with_user_agent(HeaderValue::from_static(USER_AGENT))
            .with_connect_timeout(limit * 2)
            .with_timeout(limit * 2);
        // Whoever asks decides about another try.
        let retry = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let credentials = Credentials {
            key_id: s3.access_key_id.clone(),
            secret: s3.access_key_secret.clone(),
        };
        let objects = AmazonS3Builder::new()
            .with_endpoint(s3.url.as_str())
            .with_bucket_name(&s3.bucket)
            .with_region("auto")
            .with_virtual_hosted_style_request(false)
            .with_allow_http(true)
            .with_client_options(options)
            .with_retry(retry)
            .with_credentials(Arc::new(credentials))
            .build()
            .map_err(StoreSetupError)?;
        Ok(Self::new(Arc::new(objects), limit))
    }

    /// The object at this path.
    pub(super) async fn read(&self, path: &Path) -> Result<Bytes, StoreFailure> {
        let read = async {
            let object = self
                .objects
                .get(path)
                .await
                .map_err(|error| self.reason(&error))?;
            if object.meta.size > LARGEST_OBJECT {
                return Err(StoreFailure::TooLong);
            }
            object.bytes().await.map_err(|error| self.reason(&error))
        };
        timeout(self.limit, read)
            .await
            .unwrap_or(Err(StoreFailure::TimedOut(self.limit)))
    }

    /// What an error of the store means. Its own text is looked at and never passed on: it holds
    /// what the server said.
    fn reason(&self, error: &object_store::Error) -> StoreFailure {
        let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
        if let Some(http) = causes.find_map(|cause| cause.downcast_ref::<HttpError>()) {
            // A process that had no CPU for long finds this limit over together with its own.
            if http.kind() == HttpErrorKind::Timeout {
                return StoreFailure::TimedOut(self.limit);
            }
            return StoreFailure::Away(broken(http.kind()).to_owned());
        }
        if matches!(error, object_store::Error::NotFound { .. }) {
            // In memory there is no status.
            return not_found(error);
        }
        match status(&error.to_string()) {
            Some(401 | 403) => StoreFailure::Denied,
            Some(404) => not_found(error),
            Some(status) => StoreFailure::Away(format!("the store answered HTTP {status}")),
            None => StoreFailure::Away("the store's answer makes no sense".to_owned()),
        }
    }

    /// The paths of everything below the key rings, read page by page as they are asked for.
    pub(super) fn list(&self) -> BoxStream<'static, Result<Path, StoreFailure>> {
        let root = Path::from(ROOT);
        let listing = Listing {
            paths: self.objects.list(Some(&root)),
            store: self.clone(),
            root,
            after: None,
            last: None,
        };
        stream::unfold(Some(listing), |listing| async move {
            let mut listing = listing?;
            match listing.next().await {
                Ok(path) => Some((Ok(path?), Some(listing))),
                Err(failure) => Some((Err(failure), None)),
            }
        })
        .boxed()
    }
}

/// A list that is complete only when nothing comes behind its last object: there are servers that
/// stop at a thousand and do not tell how to go on.
struct Listing {
    paths: BoxStream<'static, object_store::Result<ObjectMeta>>,
    store: KeyStore,
    root: Path,
    /// What was asked for is behind this one.
    after: Option<Path>,
    /// The last one of all so far.
    last: Option<Path>,
}

impl Listing {
    async fn next(&mut self) -> Result<Option<Path>, StoreFailure> {
        let limit = self.store.limit;
        loop {
            // A page is a request, so the time counts from one object to the next.
            let next = timeout(limit, self.paths.try_next()).await;
            let next = next.map_err(|_| StoreFailure::TimedOut(limit))?;
            match next.map_err(|error| self.store.reason(&error))? {
                Some(object) => {
                    let path = object.location;
                    if self.after.as_ref().is_some_and(|after| path <= *after) {
                        continue;
                    }
                    if self.last.as_ref().is_none_or(|last| path > *last) {
                        self.last = Some(path.clone());
                    }
                    return Ok(Some(path));
                }
                None if self.after == self.last => return Ok(None),
                None => {
                    self.after.clone_from(&self.last);
                    if let Some(after) = &self.after {
                        let objects = &self.store.objects;
                        self.paths = objects.list_with_offset(Some(&self.root), after);
                    }
                }
            }
        }
    }
}

/// The secret may be in a file that changes: it is read for every request.
struct Credentials {
    key_id: String,
    secret: SecretSource,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for Credentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(Arc::new(AwsCredential {
            key_id: self.key_id.clone(),
            secret_key: self.secret.current().expose_secret().to_owned(),
            token: None,
        }))
    }
}

fn not_found(error: &object_store::Error) -> StoreFailure {
    if error.to_string().contains("NoSuchBucket") {
        StoreFailure::NoBucket
    } else {
        StoreFailure::NoObject
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the enum may grow, and what is new has no words yet"
)]
fn broken(kind: HttpErrorKind) -> &'static str {
    match kind {
        HttpErrorKind::Connect => {
            "the store cannot be reached: check vault.s3.url, DNS and network policies"
        }
        HttpErrorKind::Interrupted | HttpErrorKind::Request => "the connection to the store broke",
        _ => "the store's answer makes no sense",
    }
}

/// The status in the text of an error; no type of the library shows it.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}
