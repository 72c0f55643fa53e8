//! Hostile input for whatever reads bytes from outside: valid documents, broken in every way.
//!
//! A target is a test that calls [`Fuzz::run`] with a reader. The reader may refuse anything and
//! must not panic, hang or take memory without bound; what it promises beside that it asserts
//! itself. `scripts/fuzz` runs all targets for longer than the quick tier does.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_in_result,
    clippy::print_stdout,
    reason = "only tests call it: it fails them, and prints what they did"
)]

mod breakage;
mod limits;
mod smallest;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use breakage::{Breakage, Corpus};
pub use limits::{INPUT_VARIABLE, SECONDS_VARIABLE, SEED_VARIABLE};
use smallest::smallest;

/// Inputs between two looks at the clock.
const ROUND: u32 = 64;
/// Most that is done to one document.
const MOST_BREAKAGES: usize = 12;

/// Documents to break.
#[derive(Clone, Debug)]
pub struct Fuzz {
    target: &'static str,
    corpus: Corpus,
}

impl Fuzz {
    /// A target of this name.
    #[must_use]
    pub const fn new(target: &'static str) -> Self {
        Self {
            target,
            corpus: Corpus {
                documents: Vec::new(),
                words: Vec::new(),
            },
        }
    }

    /// A document that the reader takes. Without any, all input is noise.
    #[must_use]
    pub fn document(mut self, document: impl Into<Vec<u8>>) -> Self {
        self.corpus.documents.push(document.into());
        self
    }

    /// Bytes that mean something to the reader, put in anywhere.
    #[must_use]
    pub fn words<W: Into<Vec<u8>>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.corpus.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Shows the reader the documents as they are, then broken ones until the time is over.
    ///
    /// # Panics
    ///
    /// With the smallest input found that makes the reader panic or hang, and how to show it again.
    pub fn run(self, read: impl Fn(&[u8])) {
        if let Some(input) = limits::input() {
            return read(&input);
        }
        for document in &self.corpus.documents {
            read(document);
        }
        let (budget, seed) = (limits::budget(), limits::seed());
        let config = Config {
            cases: ROUND,
            failure_persistence: None,
            max_shrink_iters: 20_000,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        // One runner has its fill after so many cases; its chance goes on in the next one.
        let mut chance = TestRunner::new_with_rng(config.clone(), rng);
        let corpus = &self.corpus;
        let inputs = (any::<usize>(), vec(any::<Breakage>(), 0..MOST_BREAKAGES));
        let inputs = inputs.prop_map(|(which, breakages)| corpus.broken(which, &breakages));
        let (start, mut count) = (Instant::now(), 0_u64);
        while start.elapsed() < budget {
            let mut runner = TestRunner::new_with_rng(config.clone(), chance.new_rng());
            let round = runner.run(&inputs, |input| match fault(&read, &input) {
                Some(why) => Err(TestCaseError::fail(why)),
                None => Ok(()),
            });
            if let Err(TestError::Fail(why, input)) = round {
                let input = smallest(input, |input| fault(&read, input) == Some(why.message()));
                panic!(
                    "{}: {why} at {:?}; show it again with {INPUT_VARIABLE}={}",
                    self.target,
                    String::from_utf8_lossy(&input),
                    limits::hex(&input),
                );
            }
            round.expect("no input is rejected");
            count += u64::from(ROUND);
        }
        println!(
            "{}: {count} inputs in {:.1?}, seed {}",
            self.target,
            start.elapsed(),
            limits::hex(&seed[..8])
        );
        limits::check_memory(self.target);
    }
}

/// What is wrong with how the reader takes this input.
fn fault(read: impl Fn(&[u8]), input: &[u8]) -> Option<&'static str> {
    let began = Instant::now();
    match catch_unwind(AssertUnwindSafe(|| read(input))) {
        Err(_) => Some("it panics"),
        Ok(()) if began.elapsed() > limits::HANG => Some("it hangs"),
        Ok(()) => None,
    }
}

#[cfg(test)]
mod tests;
