//! The level of log lines, which can be changed while krane runs.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::reload;

/// Longest list of directives, in bytes.
const LONGEST: usize = 512;

/// Why the level was not changed.
#[derive(Debug, thiserror::Error)]
pub enum LevelError {
    /// There is nothing in it.
    #[error("there are no directives; say such as `info` or `warn,krane=debug`")]
    Empty,
    /// It is too long to be meant.
    #[error("the directives are longer than {LONGEST} bytes")]
    TooLong,
    /// It is no list of directives.
    #[error("the directives cannot be read; say such as `info` or `warn,krane=debug`")]
    Unreadable(#[source] ParseError),
    /// Log lines go nowhere any more.
    #[error("log lines go nowhere any more")]
    Gone,
}

/// Changes the level of log lines. Cheap to clone; spans that go to a collector stay as they are.
#[derive(Clone)]
pub struct LevelHandle {
    shared: Arc<Shared>,
}

struct Shared {
    current: Mutex<Arc<str>>,
    reload: Box<dyn Fn(EnvFilter) -> bool + Send + Sync>,
}

impl fmt::Debug for LevelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LevelHandle").field(&self.get()).finish()
    }
}

impl LevelHandle {
    pub(super) fn new<S: 'static>(handle: reload::Handle<EnvFilter, S>, directives: &str) -> Self {
        let shared = Shared {
            current: Mutex::new(directives.into()),
            reload: Box::new(move |filter| handle.reload(filter).is_ok()),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// From now on lines are written as these directives say, such as `warn,krane=debug`.
    pub fn set(&self, directives: &str) -> Result<(), LevelError> {
        let directives = directives.trim();
        if directives.is_empty() {
            return Err(LevelError::Empty);
        }
        if directives.len() > LONGEST {
            return Err(LevelError::TooLong);
        }
        let filter = EnvFilter::builder()
            .with_regex(false)
            .parse(directives)
            .map_err(LevelError::Unreadable)?;
        let mut current = self.shared.current.lock();
        if !(self.shared.reload)(filter) {
            return Err(LevelError::Gone);
        }
        let before = std::mem::replace(&mut *current, directives.into());
        drop(current);
        tracing::warn!(%before, now = directives, "the level of log lines was changed");
        Ok(())
    }

    /// The directives as they are now.
    pub fn get(&self) -> Arc<str> {
        Arc::clone(&self.shared.current.lock())
    }
}
