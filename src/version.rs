//! What this binary is.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How krane names itself to whom it calls.
pub(crate) const USER_AGENT: &str = concat!("krane/", env!("CARGO_PKG_VERSION"));

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
