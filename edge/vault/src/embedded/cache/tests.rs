//! Keys on a paused clock.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join_all, poll_immediate};
use krane_ports::VaultFailure;
use tokio::sync::watch;
use tokio::time::advance;
use tonic::Code;

use super::super::super::{refused, unavailable};
use super::{Key, KeyCache, KeyName, Limits, Read, ReadResult};

const LIMITS: Limits = Limits {
    keys: 3,
    fresh: Duration::from_hours(1),
    stale: Duration::from_hours(24),
    pause: Duration::from_secs(15),
};

fn name(id: &str) -> KeyName {
    KeyName::new("env", id).unwrap()
}

#[allow(clippy::unnecessary_wraps, reason = "one of several results of a read")]
fn key() -> ReadResult {
    Ok(Arc::new(super::super::envelope::key_for_test(7)))
}

fn away() -> ReadResult {
    Err(unavailable(Code::Unavailable, "away"))
}

fn gone() -> ReadResult {
    Err(refused(Code::NotFound, "gone"))
}

/// A cache and a count of what was read.
struct Rig {
    cache: KeyCache,
    reads: Arc<AtomicUsize>,
}

impl Rig {
    fn new() -> Self {
        Self {
            cache: KeyCache::new(LIMITS),
            reads: Arc::default(),
        }
    }

    async fn get(&self, id: &str, result: fn() -> ReadResult) -> ReadResult {
        self.cache
            .get(&name(id), || {
                self.reads.fetch_add(1, Ordering::Relaxed);
                async move { result() }.boxed()
            })
            .await
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

fn code(result: &Result<Arc<Key>, VaultFailure>) -> &'static str {
    result
        .as_ref()
        .map_or_else(|failure| failure.code, |_| "ok")
}

#[tokio::test(start_paused = true)]
async fn a_key_is_read_again_after_an_hour() {
    let rig = Rig::new();
    assert!(rig.get("a", key).await.is_ok());
    advance(Duration::from_mins(59)).await;
    assert!(rig.get("a", key).await.is_ok());
    assert_eq!(rig.reads(), 1);
    advance(Duration::from_mins(1)).await;
    assert!(rig.get("a", key).await.is_ok());
    assert_eq!(rig.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_a_key_is_used_for_a_day() {
    let rig = Rig::new();
    rig.get("a", key).await.unwrap();
    advance(Duration::from_hours(2)).await;
    rig.reads();
    for _ in 0..10 {
        assert!(rig.get("a", away).await.is_ok());
    }
    assert_eq!(rig.reads(), 1, "the store is left in peace for a while");
    advance(LIMITS.pause).await;
    assert!(rig.get("a", away).await.is_ok());
    assert_eq!(rig.reads(), 1);
    advance(Duration::from_hours(22)).await;
    assert_eq!(code(&rig.get("a", away).await), "unavailable");
    assert_eq!(code(&rig.get("b", away).await), "unavailable");
    assert!(rig.get("a", key).await.is_ok());
}

/// Gone is not away.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_gone_is_not_used_any_more() {
    let rig = Rig::new();
    rig.get("a", key).await.unwrap();
    advance(Duration::from_hours(1)).await;
    assert_eq!(code(&rig.get("a", gone).await), "not_found");
    assert_eq!(code(&rig.get("a", away).await), "unavailable");
    assert!(rig.get("a", key).await.is_ok());
}

#[tokio::test]
async fn no_failure_is_remembered() {
    let rig = Rig::new();
    assert_eq!(code(&rig.get("a", gone).await), "not_found");
    assert_eq!(code(&rig.get("a", away).await), "unavailable");
    assert!(rig.get("a", key).await.is_ok());
    assert_eq!(rig.reads(), 3);
}

#[tokio::test]
async fn of_too_many_keys_the_one_read_first_goes() {
    let rig = Rig::new();
    for id in ["a", "b", "c", "d"] {
        rig.get(id, key).await.unwrap();
    }
    assert_eq!(rig.reads(), 4);
    for id in ["b", "c", "d"] {
        rig.get(id, key).await.unwrap();
    }
    assert_eq!(rig.reads(), 0);
    rig.get("a", key).await.unwrap();
    assert_eq!(rig.reads(), 1);
    let state = rig.cache.state.lock();
    assert_eq!((state.entries.len(), state.order.len()), (3, 3));
    assert!(state.reads.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_any_more_goes_after_a_day() {
    let rig = Rig::new();
    rig.get("a", key).await.unwrap();
    rig.get("b", key).await.unwrap();
    advance(LIMITS.stale).await;
    rig.get("c", key).await.unwrap();
    assert_eq!(rig.cache.state.lock().entries.len(), 1);
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_read() {
    let rig = Rig::new();
    let (open, gate) = watch::channel(false);
    let asking = (0..100).map(|_| {
        let mut gate = gate.clone();
        let read = || -> Read {
            rig.reads.fetch_add(1, Ordering::Relaxed);
            async move {
                let _ = gate.wait_for(|is_open| *is_open).await;
                key()
            }
            .boxed()
        };
        let cache = &rig.cache;
        async move { cache.get(&name("a"), read).await }
    });
    let mut asking = Box::pin(join_all(asking));
    assert!(poll_immediate(&mut asking).await.is_none());
    open.send(true).unwrap();
    assert!(asking.await.iter().all(Result::is_ok));
    assert_eq!(rig.reads(), 1);
}

#[tokio::test]
async fn a_read_that_nobody_waits_for_any_more_is_forgotten() {
    let rig = Rig::new();
    let a = name("a");
    let hanging = rig.cache.get(&a, || pending::<ReadResult>().boxed());
    let mut hanging = Box::pin(hanging);
    assert!(poll_immediate(&mut hanging).await.is_none());
    drop(hanging);
    assert!(rig.get("a", key).await.is_ok());
    assert!(rig.cache.state.lock().reads.is_empty());
}

#[tokio::test]
async fn what_was_being_read_when_everything_was_forgotten_does_not_come_in() {
    let rig = Rig::new();
    let (open, mut gate) = watch::channel(false);
    let a = name("a");
    let reading = rig.cache.get(&a, || {
        async move {
            let _ = gate.wait_for(|is_open| *is_open).await;
            key()
        }
        .boxed()
    });
    let mut reading = Box::pin(reading);
    assert!(poll_immediate(&mut reading).await.is_none());
    rig.cache.clear();
    open.send(true).unwrap();
    assert!(reading.await.is_ok());
    assert!(rig.cache.state.lock().entries.is_empty());
}
