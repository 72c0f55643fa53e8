//! The stream of desired states: opened, read and ended, without a deadline anywhere.
//!
//! A server may hold the headers of its answer back until it has a message, so a healthy stream
//! can stay in its opening for hours. *Open* is what this module says it is: the opening has gone
//! on for a while without an error, on a connection whose other side has spoken.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use krane_ports::{StreamEnd, StreamEvent};
use krane_proto::raw::RawCodec;
use tokio::sync::watch;
use tonic::Request;
use tonic::codec::Streaming;

use super::Shared;
use super::failure::{Failure, SecondTry};
use super::unary::Exchange;
use crate::wire::WireRequest;

/// The events of one stream after `cursor`.
pub(super) fn watch(shared: Arc<Shared>, cursor: u64) -> BoxStream<'static, StreamEvent> {
    let request = shared.wire.watch(cursor);
    let reader = Reader { shared, request };
    stream::unfold((reader, Stage::Closed), |(reader, stage)| async move {
        let (event, stage) = reader.next(stage).await?;
        Some((event, (reader, stage)))
    })
    .boxed()
}

/// How far a stream has come.
enum Stage {
    /// Nothing has been sent.
    Closed,
    /// Open, and without a message so far.
    Silent(BoxFuture<'static, First>),
    /// Open by its first message, which is still to be handed out.
    Holding(Bytes, Open),
    /// Open.
    Reading(Open),
    /// Over.
    Over,
}

/// What a stream begins with: a message, or its end.
type First = Result<Option<(Bytes, Open)>, Failure>;

struct Open {
    exchange: Exchange,
    messages: Streaming<Bytes>,
}

struct Reader {
    shared: Arc<Shared>,
    request: WireRequest,
}

impl Reader {
    async fn next(&self, stage: Stage) -> Option<(StreamEvent, Stage)> {
        let step = match stage {
            Stage::Closed => self.open().await,
            Stage::Silent(first) => match first.await {
                Ok(Some((message, open))) => self.item(&message, open),
                Ok(None) => self.end(None),
                Err(failure) => self.end(Some(failure)),
            },
            Stage::Holding(message, open) => self.item(&message, open),
            Stage::Reading(mut open) => match open.messages.message().await {
                Ok(Some(message)) => self.item(&message, open),
                Ok(None) => self.end(None),
                // The last look at it: tonic would repeat the error for ever.
                Err(status) => self.end(Some(open.exchange.failure(&self.shared, &status))),
            },
            Stage::Over => return None,
        };
        Some(step)
    }

    async fn open(&self) -> (StreamEvent, Stage) {
        let mut is_second_try = false;
        loop {
            let exchange = match Exchange::start(&self.shared, &self.request).await {
                Ok(exchange) => exchange,
                Err(failure) => return self.end(Some(failure)),
            };
            let heard = exchange.connection.heard.clone();
            let mut first = self.first(exchange);
            let outcome = match tokio::time::timeout(self.shared.timing.open, &mut first).await {
                Ok(outcome) => outcome,
                Err(_) => match select(first, Box::pin(spoken(heard))).await {
                    Either::Left((outcome, _)) => outcome,
                    Either::Right(((), first)) => {
                        return (StreamEvent::Opened, Stage::Silent(first));
                    }
                },
            };
            match outcome {
                Ok(Some((message, open))) => {
                    return (StreamEvent::Opened, Stage::Holding(message, open));
                }
                Ok(None) => return self.end(None),
                Err(failure) if !is_second_try && failure.second_try == SecondTry::NeverSent => {
                    is_second_try = true;
                }
                Err(failure) => return self.end(Some(failure)),
            }
        }
    }

    fn first(&self, mut exchange: Exchange) -> BoxFuture<'static, First> {
        let shared = Arc::clone(&self.shared);
        let request = Request::new(self.request.body.clone());
        async move {
            let path = exchange.path.clone();
            let answer = exchange
                .grpc
                .server_streaming(request, path, RawCodec)
                .await;
            // An error may come instead of the headers or after them: servers differ.
            let mut messages = match answer {
                Ok(answer) => answer.into_inner(),
                Err(status) => return Err(exchange.failure(&shared, &status)),
            };
            match messages.message().await {
                Ok(Some(message)) => Ok(Some((message, Open { exchange, messages }))),
                Ok(None) => Ok(None),
                Err(status) => Err(exchange.failure(&shared, &status)),
            }
        }
        .boxed()
    }

    fn item(&self, message: &Bytes, open: Open) -> (StreamEvent, Stage) {
        let item = self.shared.wire.stream_item(message);
        (StreamEvent::Item(item), Stage::Reading(open))
    }

    fn end(&self, failure: Option<Failure>) -> (StreamEvent, Stage) {
        let end = failure.map_or_else(
            || StreamEnd {
                code: "ok",
                message: "the server ended the stream without an error".to_owned(),
                is_oversize: false,
            },
            StreamEnd::from,
        );
        self.shared.observer.call(self.request.method, end.code);
        (StreamEvent::Ended(end), Stage::Over)
    }
}

/// Waits until the other side of the connection has said anything.
async fn spoken(mut heard: watch::Receiver<bool>) {
    if heard.wait_for(|heard| *heard).await.is_err() {
        // The connection is gone, which the call itself is about to tell.
        pending::<()>().await;
    }
}
