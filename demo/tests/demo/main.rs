//! The demo as a process, and the verbs of krane that ask it.

mod bundle;
mod story;

use std::path::PathBuf;

/// The program of operators, which a build of the workspace leaves beside the demo.
fn krane() -> PathBuf {
    let krane = PathBuf::from(env!("CARGO_BIN_EXE_krane-demo")).with_file_name("krane");
    assert!(
        krane.exists(),
        "there is no {}: cargo build",
        krane.display()
    );
    krane
}
