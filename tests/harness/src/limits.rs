//! How long tests wait before they give up. Generous: the machine may be compiling. What a test measures it prints.

use std::time::Duration;

/// For what should take no time at all.
pub const SHORT: Duration = Duration::from_secs(30);
/// For what takes seconds.
pub const LONG: Duration = Duration::from_secs(90);
/// For hundreds of objects on a busy machine.
pub const VERY_LONG: Duration = Duration::from_mins(4);
