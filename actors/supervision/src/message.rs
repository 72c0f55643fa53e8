//! What actors tell each other, and how it travels.

use std::fmt;

use tokio::time::Instant;

use crate::gate::Place;

/// A message an actor understands.
pub trait Message: Send + fmt::Debug + 'static {
    /// The variant's name in snake case, for status and metrics: a closed set.
    fn name(&self) -> &'static str;
}

/// A message on its way: with its place in the mailbox and when it was sent.
#[derive(Debug)]
pub struct Envelope<M> {
    pub(crate) message: M,
    pub(crate) place: Place,
    pub(crate) sent: Instant,
}

impl<M> Envelope<M> {
    pub(crate) fn new(message: M, place: Place) -> Self {
        Self {
            message,
            place,
            sent: Instant::now(),
        }
    }
}
