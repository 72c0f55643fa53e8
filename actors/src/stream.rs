//! Follows the desired-state stream of one controller into its store.
//!
//! Owns: the connection; none on a standby (D22). Never applies anything and never waits for
//! lanes. Lost when it dies: nothing but the connection; the next incarnation resumes at the
//! store's cursor.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use krane_domain::desired::StreamItem;
use krane_domain::ids::{Moment, ObjectKey};
use krane_ports::StateSpan;
use krane_ports::{ControlPlane, StreamEnd, StreamEvent};
use krane_supervision::actor::Behaviour;
use krane_supervision::address::Address;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::task::JoinSet;

use crate::contact::Contact;
use crate::events::Happening;
use crate::lease::{Duty, Leadership, OneTimer, Turn};
use crate::metrics::ControllerMetrics;
use crate::reconciler::{self, ReconcilerMessage};
use crate::status::{Context, StatusBoard};
use crate::store::{Store, StreamEnding, StreamOpening};

/// Shortest wait before a connect after the first …
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// … and how much longer it may be.
const RECONNECT_SPREAD: Duration = Duration::from_secs(4);

/// What a stream actor understands.
#[derive(Debug)]
pub enum StreamMessage {
    /// Open the stream.
    Connect,
    /// This process may write from now on, or may not any more.
    Turn,
    /// Something happened on connection number `connection`.
    Event {
        /// Which connection; events of an earlier one are ignored.
        connection: u64,
        /// What.
        event: StreamEvent,
    },
}

impl Message for StreamMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Turn => "turn",
            Self::Event {
                event: StreamEvent::Opened,
                ..
            } => "opened",
            Self::Event {
                event: StreamEvent::Item(_),
                ..
            } => "item",
            Self::Event {
                event: StreamEvent::Ended(_),
                ..
            } => "ended",
        }
    }
}

/// A stream actor's state.
pub struct Stream {
    store: Arc<Store>,
    control_plane: Arc<dyn ControlPlane>,
    reconciler: Address<ReconcilerMessage>,
    contact: Contact,
    metrics: ControllerMetrics,
    duty: Duty,
    reconnect: OneTimer,
    pump: JoinSet<()>,
    connection: u64,
}

impl Stream {
    /// A stream actor that feeds this store.
    pub fn new(
        store: Arc<Store>,
        control_plane: Arc<dyn ControlPlane>,
        reconciler: Address<ReconcilerMessage>,
        contact: Contact,
        metrics: ControllerMetrics,
        leadership: Leadership,
    ) -> Self {
        let pump = JoinSet::new();
        Self {
            store,
            control_plane,
            reconciler,
            contact,
            metrics,
            duty: Duty::new(leadership),
            reconnect: OneTimer::default(),
            pump,
            connection: 0,
        }
    }
}

impl Behaviour for Stream {
    type Message = StreamMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<StreamMessage>) -> Result<(), ActorError> {
        self.duty.follow(context, || StreamMessage::Turn);
        self.take_turn(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: StreamMessage,
        context: &Context<StreamMessage>,
    ) -> Result<(), ActorError> {
        if self.take_turn(context) || !self.duty.is_on() {
            return Ok(());
        }
        if self.store.take_reconnect_request() {
            self.connect(context);
            return Ok(());
        }
        match message {
            StreamMessage::Connect => self.connect(context),
            StreamMessage::Event { connection, event } if connection == self.connection => {
                match event {
                    StreamEvent::Opened => {
                        if !self.store.is_stream_open() {
                            self.opened(context);
                        }
                    }
                    StreamEvent::Item(item) => self.item(item, context),
                    StreamEvent::Ended(end) => self.ended(&end, context),
                }
            }
            StreamMessage::Event { .. } | StreamMessage::Turn => {}
        }
        Ok(())
    }
}

impl Stream {
    /// Opens or closes the stream when this process has come to lead, or leads no more. Whatever
    /// is still in the mailbox then is of an earlier connection.
    fn take_turn(&mut self, context: &Context<StreamMessage>) -> bool {
        let now = context.board.now();
        match self.duty.turn(now) {
            Some(Turn::On(term)) => {
                self.store.enter_term(term, now);
                self.connect(context);
                true
            }
            Some(Turn::Off) => {
                self.close(now);
                true
            }
            None => false,
        }
    }

    fn close(&mut self, now: Moment) {
        self.reconnect.cancel();
        self.pump.abort_all();
        self.connection += 1;
        self.metrics.stream_connected.set(0);
        self.store.note_stream_closed(now);
    }

    fn connect(&mut self, context: &Context<StreamMessage>) {
        // Whatever is still in the mailbox is of an earlier connection.
        self.reconnect.cancel();
        self.pump.abort_all();
        while self.pump.try_join_next().is_some() {}
        self.metrics.stream_connected.set(0);
        self.connection += 1;
        let connection = self.connection;
        let cursor = self.store.begin_stream_connect(context.board.now());
        tracing::debug!(
            controller = self.store.controller().name(),
            cursor,
            "opening the stream"
        );
        let store = Arc::clone(&self.store);
        let control_plane = Arc::clone(&self.control_plane);
        let ended = |code, message: &str| {
            StreamEvent::Ended(StreamEnd {
                code,
                message: message.to_owned(),
                is_oversize: false,
            })
        };
        let own = context.own.clone();
        let read = {
            let own = own.clone();
            async move {
                let mut events = control_plane.watch(cursor).await;
                loop {
                    store.room().await;
                    let event = events.next().await;
                    let event = event.unwrap_or_else(|| ended("ok", "the stream ended"));
                    let is_end = matches!(event, StreamEvent::Ended(_));
                    own.hand_in(StreamMessage::Event { connection, event })
                        .await;
                    if is_end {
                        return;
                    }
                }
            }
        };
        self.pump.spawn(async move {
            // A panic here would leave a stream that looks open for ever.
            if AssertUnwindSafe(read).catch_unwind().await.is_err() {
                let event = ended("internal", "reading the stream made krane panic");
                own.tell(StreamMessage::Event { connection, event });
            }
        });
    }

    fn opened(&self, context: &Context<StreamMessage>) {
        let now = context.board.now();
        self.metrics.stream_connected.set(1);
        let StreamOpening { cursor, silence } = self.store.note_stream_opened(now);
        tracing::info!(
            controller = self.store.controller().name(),
            cursor,
            "stream open"
        );
        let controller = Some(self.store.controller());
        context
            .board
            .record(controller, Happening::StreamOpened { cursor });
        self.contact.heard_after(silence, now);
    }

    fn item(&self, item: StreamItem, context: &Context<StreamMessage>) {
        let now = context.board.now();
        if let StreamItem::Unnamed { version, reason } = &item {
            tracing::warn!(
                controller = self.store.controller().name(),
                version,
                reason,
                "a message that names no object was passed over"
            );
        }
        let named = traced(&item, context);
        let is_first = self.store.receive_stream_item(item, now);
        if let Some((key, version)) = named {
            self.begin_trace(&key, version, context);
        }
        if is_first {
            self.opened(context);
        } else {
            self.contact.heard(now);
        }
        reconciler::nudge(&self.reconciler);
    }

    /// Begins the trace of a state that was news.
    fn begin_trace(&self, key: &ObjectKey, version: u64, context: &Context<StreamMessage>) {
        let is_news = self.store.lacks_trace(key, version);
        if let Some(traces) = context.board.traces().filter(|_| is_news) {
            let trace = traces.received(StateSpan {
                controller: self.store.controller(),
                key,
                version,
            });
            self.store.begin_trace(key, version, trace);
        }
    }

    fn ended(&mut self, end: &StreamEnd, context: &Context<StreamMessage>) {
        let now = context.board.now();
        let controller = self.store.controller().name();
        self.metrics.stream_connected.set(0);
        self.metrics.stream_ended(end.code);
        let StreamEnding { is_news, was_open } = self.store.note_stream_ended(end, now);
        if is_news || was_open {
            let ended = Happening::StreamEnded {
                code: end.code,
                message: end.message.clone(),
            };
            context.board.record(Some(self.store.controller()), ended);
        }
        // No field may be called `message`: it would take the place of the sentence.
        let (code, reason) = (end.code, &end.message);
        if end.is_oversize {
            self.metrics.states_oversize.inc();
        }
        if end.is_oversize && is_news {
            tracing::error!(
                controller,
                reason,
                "the control plane sent a message over the size limit; everything behind it is \
                 out of reach of the stream until it is replaced by a smaller one"
            );
        } else if is_news {
            tracing::warn!(controller, code, reason, "stream ended; reconnecting");
        }
        let delay = RECONNECT_AFTER + RECONNECT_SPREAD.mul_f64(self.store.chance().unit());
        self.reconnect.set(delay, context, StreamMessage::Connect);
    }
}

/// Which state a message is about, when traces are on.
fn traced(item: &StreamItem, context: &Context<StreamMessage>) -> Option<(ObjectKey, u64)> {
    context.board.traces()?;
    match item {
        StreamItem::State(state) => Some((state.key.clone(), state.version)),
        StreamItem::Unnamed { .. } => None,
    }
}
