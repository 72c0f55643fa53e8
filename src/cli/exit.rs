//! Exit codes; those above 2 are of `sysexits.h`.

/// Done.
pub const OK: u8 = 0;
/// A check found something.
pub const FINDINGS: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// Something this process needs is not there, such as a free port.
pub const UNAVAILABLE: u8 = 69;
/// The agent's own code failed.
pub const SOFTWARE: u8 = 70;
/// Something is not permitted.
pub const NO_PERMISSION: u8 = 77;
/// The configuration is wrong; nothing was started.
pub const CONFIG: u8 = 78;
