//! The krane binary.

use std::process::ExitCode;

// Supervision catches panics; a build that aborts on them would be another program.
const _: () = assert!(
    cfg!(panic = "unwind"),
    "krane must be built with panic = \"unwind\""
);

fn main() -> ExitCode {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    krane::cli::main(std::env::args_os())
}
