//! Faults on purpose: what happens to a call before it is carried out and before it is answered.

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// A call that a hook decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The method, such as `apply` or `heartbeat`.
    pub call: &'static str,
    /// What it is about, as its `Display` says it; empty when it names nothing.
    pub subject: String,
    /// How many calls of the same port began before it.
    pub number: u64,
}

/// Which side of a call a hook is asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Nothing has happened yet.
    Before,
    /// It was carried out and its answer is ready.
    After,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<F> {
    /// It goes on.
    Proceed,
    /// It goes on after this time.
    Delay(Duration),
    /// It ends with this failure; before it is carried out, nothing happens.
    Fail(F),
    /// It is carried out, and its answer is lost on the way back.
    LoseAnswer,
    /// It never ends.
    Hang,
}

type Decide<F> = dyn Fn(Side, &Op) -> Verdict<F> + Send + Sync;

/// The hook of one port, shared by clones. Without one every call proceeds.
pub struct Hooks<F>(Arc<Mutex<Option<Arc<Decide<F>>>>>);

impl<F> Hooks<F> {
    /// Asks `decide` about every call from now on.
    pub fn set(&self, decide: impl Fn(Side, &Op) -> Verdict<F> + Send + Sync + 'static) {
        *self.0.lock() = Some(Arc::new(decide));
    }

    /// Lets every call proceed from now on.
    pub fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Carries out a call as the hook says; `lost` is the failure of an answer that is lost.
    pub async fn around<T>(
        &self,
        op: &Op,
        lost: impl FnOnce() -> F,
        call: impl Future<Output = Result<T, F>>,
    ) -> Result<T, F> {
        match self.ask(Side::Before, op) {
            Verdict::Proceed => {}
            Verdict::Delay(delay) => pause(delay).await,
            Verdict::Fail(failure) => return Err(failure),
            Verdict::LoseAnswer => {
                let _ = call.await;
                return Err(lost());
            }
            Verdict::Hang => return pending().await,
        }
        let answer = call.await;
        match self.ask(Side::After, op) {
            Verdict::Proceed => answer,
            Verdict::Delay(delay) => {
                pause(delay).await;
                answer
            }
            Verdict::Fail(failure) => Err(failure),
            Verdict::LoseAnswer => Err(lost()),
            Verdict::Hang => pending().await,
        }
    }

    fn ask(&self, side: Side, op: &Op) -> Verdict<F> {
        // The hook may take its time or change the hooks: never under the lock.
        let decide = self.0.lock().clone();
        decide.map_or(Verdict::Proceed, |decide| decide(side, op))
    }
}

impl<F> Clone for Hooks<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Default for Hooks<F> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<F> fmt::Debug for Hooks<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the outside world takes its time"
)]
async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{Instant, timeout};

    use super::*;

    async fn run(side: Side, verdict: Verdict<&'static str>) -> (Result<u32, &'static str>, u32) {
        let hooks = Hooks::default();
        hooks.set(move |asked, op: &Op| {
            assert_eq!((op.call, op.number), ("apply", 7));
            if asked == side {
                verdict.clone()
            } else {
                Verdict::Proceed
            }
        });
        let op = Op {
            call: "apply",
            subject: "ws/web".to_owned(),
            number: 7,
        };
        let done = AtomicU32::new(0);
        let call = async { Ok(done.fetch_add(1, Ordering::Relaxed)) };
        let limit = Duration::from_secs(60);
        let answer = timeout(limit, hooks.around(&op, || "lost", call)).await;
        (answer.unwrap_or(Err("hung")), done.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn each_verdict_does_what_it_says_on_either_side() {
        let (before, after) = (Side::Before, Side::After);
        assert_eq!(run(before, Verdict::Proceed).await, (Ok(0), 1));
        assert_eq!(run(before, Verdict::Fail("no")).await, (Err("no"), 0));
        assert_eq!(run(after, Verdict::Fail("no")).await, (Err("no"), 1));
        assert_eq!(run(before, Verdict::LoseAnswer).await, (Err("lost"), 1));
        assert_eq!(run(after, Verdict::LoseAnswer).await, (Err("lost"), 1));
        assert_eq!(run(before, Verdict::Hang).await, (Err("hung"), 0));
        assert_eq!(run(after, Verdict::Hang).await, (Err("hung"), 1));
        let start = Instant::now();
        let delay = Duration::from_secs(5);
        assert_eq!(run(before, Verdict::Delay(delay)).await, (Ok(0), 1));
        assert_eq!(run(after, Verdict::Delay(delay)).await, (Ok(0), 1));
        assert_eq!(start.elapsed(), 2 * delay);
    }
}
