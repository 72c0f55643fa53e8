//! A bucket in memory that counts what is read, and can be away.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};

/// Clones are the same bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct Bucket(Arc<State>);

#[derive(Debug, Default)]
struct State {
    objects: InMemory,
    is_away: AtomicBool,
    reads: AtomicUsize,
}

impl Bucket {
    pub(super) async fn put(&self, path: &str, body: Vec<u8>) {
        self.0
            .objects
            .put(&Path::from(path), body.into())
            .await
            .unwrap();
    }

    pub(super) async fn remove(&self, path: &str) {
        self.0.objects.delete(&Path::from(path)).await.unwrap();
    }

    pub(super) fn go_away(&self, is_away: bool) {
        self.0.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Reads since the last time that somebody asked.
    pub(super) fn reads(&self) -> usize {
        self.0.reads.swap(0, Ordering::Relaxed)
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bucket")
    }
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        if self.0.is_away.load(Ordering::Relaxed) {
            return Err(Error::Generic {
                store: "bucket",
                source: "it is away".into(),
            });
        }
        self.0.objects.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.objects.list_with_delimiter(prefix).await
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        panic!("krane never writes to the bucket")
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        panic!("krane never writes to the bucket")
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        panic!("krane never deletes in the bucket")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        panic!("krane never writes to the bucket")
    }
}
