//! What becomes of the events of a watch on their way to the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use krane_ports::{WatchEnd, WatchEvent};
use parking_lot::Mutex;

use crate::hooks::Op;

/// What becomes of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives.
    Deliver,
    /// It is lost.
    Drop,
    /// It and everything behind it arrives after this time.
    Delay(Duration),
    /// It arrives twice.
    Repeat,
    /// It arrives after the one that follows it.
    Swap,
    /// The connection breaks instead.
    Break,
    /// Nothing arrives any more, and the connection stays open.
    Silence,
}

type Decide = dyn Fn(&Op, &WatchEvent) -> Delivery + Send + Sync;

/// The hook of a client's watches, shared by clones. Without one every event arrives.
#[derive(Clone, Default)]
pub struct Deliveries(Arc<Mutex<Option<Arc<Decide>>>>);

impl Deliveries {
    /// Asks `decide` about every event from now on, with the call that opened its watch.
    pub fn set(&self, decide: impl Fn(&Op, &WatchEvent) -> Delivery + Send + Sync + 'static) {
        *self.0.lock() = Some(Arc::new(decide));
    }

    /// Lets every event arrive from now on.
    pub fn clear(&self) {
        *self.0.lock() = None;
    }

    fn ask(&self, op: &Op, event: &WatchEvent) -> Delivery {
        let decide = self.0.lock().clone();
        decide.map_or(Delivery::Deliver, |decide| decide(op, event))
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliveries")
    }
}

struct Way {
    events: BoxStream<'static, WatchEvent>,
    deliveries: Deliveries,
    op: Op,
    /// Arrives before anything else is asked for.
    next: Option<WatchEvent>,
    is_over: bool,
}

/// The stream as it arrives.
pub(super) fn deliver(
    events: BoxStream<'static, WatchEvent>,
    deliveries: Deliveries,
    op: Op,
) -> BoxStream<'static, WatchEvent> {
    let way = Way {
        events,
        deliveries,
        op,
        next: None,
        is_over: false,
    };
    stream::unfold(way, Way::step).boxed()
}

impl Way {
    async fn step(mut self) -> Option<(WatchEvent, Self)> {
        if let Some(event) = self.next.take() {
            return Some((event, self));
        }
        if self.is_over {
            return None;
        }
        loop {
            let event = self.events.next().await?;
            let event = match self.deliveries.ask(&self.op, &event) {
                Delivery::Deliver => event,
                Delivery::Drop if matches!(event, WatchEvent::Ended(_)) => event,
                Delivery::Drop => continue,
                Delivery::Delay(delay) => {
                    pause(delay).await;
                    event
                }
                Delivery::Repeat => {
                    self.next = Some(event.clone());
                    event
                }
                Delivery::Swap => match self.events.next().await {
                    Some(WatchEvent::Ended(end)) => {
                        self.next = Some(WatchEvent::Ended(end));
                        event
                    }
                    Some(following) => {
                        self.next = Some(event);
                        following
                    }
                    None => event,
                },
                Delivery::Break => {
                    let text = "the connection was reset".to_owned();
                    WatchEvent::Ended(WatchEnd::Failed(text))
                }
                Delivery::Silence => return futures::future::pending().await,
            };
            self.is_over = matches!(event, WatchEvent::Ended(_));
            return Some((event, self));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the outside world takes its time"
)]
async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}
