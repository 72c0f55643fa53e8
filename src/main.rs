//! The krane binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    krane::cli::main(std::env::args_os())
}
