//! What this binary is.

use prometheus::{IntGaugeVec, Opts, Registry};

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit it was built from, or `unknown`.
pub const COMMIT: &str = env!("KRANE_BUILD_SHA");

/// The compiler it was built with.
pub const RUSTC: &str = env!("KRANE_BUILD_RUSTC");

/// Version, commit and compiler in one line.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("KRANE_BUILD_SHA"),
    ", rustc ",
    env!("KRANE_BUILD_RUSTC"),
    ")"
);

/// Registers `krane_build_info`, which is 1 and names this binary in its labels.
pub fn register_build_info(registry: &Registry) -> Result<(), prometheus::Error> {
    let options = Opts::new(
        "krane_build_info",
        "The version, commit and compiler of this process.",
    );
    let info = IntGaugeVec::new(options, &["version", "commit", "rustc"])?;
    info.with_label_values(&[VERSION, COMMIT, RUSTC]).set(1);
    registry.register(Box::new(info))
}
