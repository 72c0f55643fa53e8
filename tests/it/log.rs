//! What the thread of a test logs.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::MakeWriter;

/// Takes down what is logged for as long as it lives.
pub(crate) struct Listening {
    log: Log,
    _guard: tracing::subscriber::DefaultGuard,
    _other: Dispatch,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Listening {
    pub(crate) fn to(level: Level) -> Self {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(log.clone());
        // With one subscriber in the process, tracing asks only the thread that meets a log line
        // first whether anybody wants it; that may be another test's. With two it asks all.
        let other = Dispatch::new(tracing::subscriber::NoSubscriber::new());
        let guard = tracing::subscriber::set_default(subscriber.finish());
        Self {
            log,
            _guard: guard,
            _other: other,
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.log.0.lock()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
