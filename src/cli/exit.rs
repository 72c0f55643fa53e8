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

/// The codes, as `--help` lists them.
pub const HELP: &str = "\
Exit codes:
   0  done, or all is well
   1  a check found something
   2  the command line is wrong
  69  something that is needed is not available, such as a free port
  70  krane's own code failed
  77  nothing but rights is missing
  78  the configuration is wrong, nothing was started

docs/errors.md explains every error by its code.";

/// Those of `krane run`.
pub const HELP_OF_RUN: &str = "\
Exit codes: 0 stopped by a signal, 69 a port or thread is not to be had, 70 krane's own code failed, \
78 the configuration or the credentials are wrong and nothing was started, 130 or 143 ended at once by a \
second SIGINT or SIGTERM. With --observe: 0 nothing would be written, 1 something would be or something is in \
the way, 69 not everything was looked at yet.";

/// Those of `krane check-config`.
pub const HELP_OF_CHECK_CONFIG: &str = "\
Exit codes: 0 the configuration is valid, 78 it is wrong.";
