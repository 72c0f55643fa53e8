//! The program of `tests/connect-go`, built once.
#![allow(clippy::expect_used, reason = "helpers of tests may fail them")]

use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio::sync::OnceCell;

/// Its path.
pub(crate) async fn binary() -> &'static Path {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    BINARY
        .get_or_init(|| async {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect-go");
            let status = Command::new("go")
                .args(["build", "-o"])
                .arg(&path)
                .arg(".")
                .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/connect-go"))
                .status()
                .await
                .expect("Go must be installed for these tests: https://go.dev/dl");
            assert!(status.success(), "the connect-go program must build");
            path
        })
        .await
}
