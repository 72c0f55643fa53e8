//! A desired-state stream.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use krane_domain::desired::StreamItem;
use krane_ports::{RpcFailure, StreamEnd, StreamEvent};
use tokio::time::timeout;

use super::shared::{Call, Shared, Way};
use super::{OPEN_AFTER, transport};
use crate::bell::Listener;
use crate::hooks::{Hooks, Op};

/// The events of one stream after `cursor`.
pub(super) fn stream(
    shared: Arc<Shared>,
    hooks: Hooks<RpcFailure>,
    cursor: u64,
) -> BoxStream<'static, StreamEvent> {
    let number = shared.change(|inner| inner.told.watching(cursor));
    let reader = Reader {
        changes: shared.changes(),
        shared,
        hooks,
        number,
        cursor,
        sent: cursor,
        queue: VecDeque::new(),
        stage: Stage::Closed,
    };
    stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((event, reader))
    })
    .boxed()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Closed,
    Open,
    Over,
}

struct Reader {
    shared: Arc<Shared>,
    changes: Listener,
    hooks: Hooks<RpcFailure>,
    number: usize,
    cursor: u64,
    /// The highest version handed out.
    sent: u64,
    queue: VecDeque<StreamItem>,
    stage: Stage,
}

impl Reader {
    async fn next(&mut self) -> Option<StreamEvent> {
        match self.stage {
            Stage::Closed => Some(self.open().await),
            Stage::Open => Some(match self.row().await {
                Ok(()) => self
                    .queue
                    .pop_front()
                    .map_or_else(|| self.end(cancelled()), StreamEvent::Item),
                Err(failure) => self.end(failure),
            }),
            Stage::Over => None,
        }
    }

    async fn open(&mut self) -> StreamEvent {
        let (shared, hooks) = (Arc::clone(&self.shared), self.hooks.clone());
        let op = Op {
            call: Call::Watch.name(),
            subject: self.cursor.to_string(),
            number: shared.number(),
        };
        let opening = async {
            shared.passable().await?;
            let fault = shared.change(|inner| inner.faults.take(Call::Watch));
            shared.delay(Call::Watch).await;
            fault.map_or(Ok(()), Err)
        };
        let lost = || transport("unavailable", "the stream broke while it was opened");
        let cut = cut(Arc::clone(&shared), self.number);
        let opened = tokio::select! {
            biased;
            failure = cut => Err(failure),
            opened = hooks.around(&op, lost, opening) => opened,
        };
        if let Err(failure) = opened {
            return self.end(failure);
        }
        let holds_headers = shared.look().holds_headers;
        if holds_headers && let Ok(Err(failure)) = timeout(OPEN_AFTER, self.row()).await {
            return self.end(failure);
        }
        self.stage = Stage::Open;
        StreamEvent::Opened
    }

    /// Waits until there is a row in the queue.
    async fn row(&mut self) -> Result<(), RpcFailure> {
        loop {
            self.changes.catch_up();
            {
                let mut inner = self.shared.look();
                if let Some((before, failure)) = &inner.cut
                    && self.number < *before
                {
                    return Err(failure.clone());
                }
                if inner.way == Way::Open {
                    if self.queue.is_empty() {
                        let mut rows = inner.rows.after(self.sent);
                        let highest = rows.iter().map(|(version, _)| *version).max();
                        self.sent = self.sent.max(highest.unwrap_or(0));
                        let order = inner.order;
                        order.put(&mut rows, &mut inner.chance);
                        self.queue.extend(rows.into_iter().map(|(_, row)| row));
                    }
                    if !self.queue.is_empty() {
                        return Ok(());
                    }
                }
            }
            self.changes.rung().await;
        }
    }

    fn end(&mut self, failure: RpcFailure) -> StreamEvent {
        self.stage = Stage::Over;
        let (number, code) = (self.number, failure.code);
        self.shared.change(|inner| inner.told.ended(number, code));
        StreamEvent::Ended(StreamEnd {
            code,
            message: failure.message,
            is_oversize: false,
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let number = self.number;
        self.shared
            .change(|inner| inner.told.ended(number, "canceled"));
    }
}

/// Waits until the script cuts this stream.
async fn cut(shared: Arc<Shared>, number: usize) -> RpcFailure {
    let mut changes = shared.changes();
    loop {
        changes.catch_up();
        let cut = shared.look().cut.clone();
        if let Some((before, failure)) = cut
            && number < before
        {
            return failure;
        }
        changes.rung().await;
    }
}

fn cancelled() -> RpcFailure {
    transport("canceled", "the control plane is no more")
}
