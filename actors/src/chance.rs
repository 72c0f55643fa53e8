//! Chance that can be repeated: a seeded source of jitter.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// A source of random numbers with a known seed, shared by clones.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<fastrand::Rng>>);

impl Chance {
    /// A source that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&self) -> f64 {
        self.0.lock().f64()
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}
