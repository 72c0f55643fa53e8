//! Reads files again that may change while krane runs, so that no request waits for a disk (D42).

use std::time::Duration;

use krane_actors::status::StatusBoard;
use tokio::task::JoinSet;

use krane_settings::SecretFiles;

/// Between two looks.
const PACE: Duration = Duration::from_secs(5);
/// Until the second look at a file that was just changed: its writer may not be done.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The task that looks at files; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct FileReader {
    _work: JoinSet<()>,
}

impl FileReader {
    /// Starts to look at these files.
    pub(super) fn start(files: SecretFiles, board: StatusBoard) -> Self {
        let mut work = JoinSet::new();
        if !files.is_empty() {
            work.spawn(follow(files, board));
        }
        Self { _work: work }
    }
}

async fn follow(files: SecretFiles, board: StatusBoard) {
    let mut pause = PACE;
    loop {
        #[allow(
            clippy::disallowed_methods,
            reason = "no handler: whoever owns the task drops it"
        )]
        tokio::time::sleep(pause).await;
        let (files, now) = (files.clone(), board.now());
        let mut look = JoinSet::new();
        look.spawn_blocking(move || files.refresh(now));
        pause = match look.join_next().await {
            Some(Ok(true)) => SECOND_LOOK,
            Some(Ok(false)) => PACE,
            Some(Err(_)) | None => {
                tracing::error!("reading files of secrets made krane panic; it is retried");
                PACE
            }
        };
    }
}
