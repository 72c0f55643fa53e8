//! krane touches the world here: settings, adapters of the actors' ports, servers, the page, the CLI.

// Supervision catches panics; a build that aborts on them would be another program.
const _: () = assert!(
    cfg!(panic = "unwind"),
    "krane must be built with panic = \"unwind\""
);

pub mod cli;
pub mod observe;
pub mod preflight;
pub mod render;
pub mod run;
pub mod version;
