//! What a process has: a clock, files that change, servers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::kinds::Password;
use tokio_util::sync::CancellationToken;

/// Gives the password of the registry in force: its file may have changed. It never blocks.
pub type PasswordSource = Arc<dyn Fn() -> Password + Send + Sync>;

/// The clock on the wall.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Seconds since the Unix epoch, for what people read and for holds.
    fn unix_seconds(&self) -> u64;
}

/// Work of a server that the tree owns: it runs until told to stop or until it fails.
#[async_trait]
pub trait Server: Send + Sync + 'static {
    /// Serves until `stop` is cancelled. Called again after a failure.
    async fn serve(&self, stop: CancellationToken) -> Result<(), String>;
}
