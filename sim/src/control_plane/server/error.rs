//! What can go wrong with the server itself.

use std::{io, net::SocketAddr};

/// The server could not do what the test asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its port could not be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}
