//! The way to the control plane.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use krane_actors::store::Store;
use krane_domain::desired::StreamItem;
use krane_domain::ids::Controller;
use krane_domain::report::Report;
use krane_ports::{
    Answer, ControlPlane, Question, RpcFailure, RpcFailureKind, StreamEnd, StreamEvent,
};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::hooks::{Hooks, Op};

use super::{pause, verdict};
use crate::plan::{CallFault, MessageFault, ms};
use crate::shared::{Epoch, Shared};

/// As the real adapter's.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the real connection takes to notice that it is dead.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// One incarnation's way to the control plane.
#[derive(Clone)]
pub(crate) struct ControlPort {
    epoch: Epoch,
    controller: Controller,
    /// Known once the agent is made.
    store: Arc<OnceLock<Arc<Store>>>,
}

impl ControlPort {
    pub(crate) fn new(epoch: &Epoch, controller: Controller) -> Self {
        Self {
            epoch: epoch.clone(),
            controller,
            store: Arc::default(),
        }
    }

    /// Whose cursor counts.
    pub(crate) fn serve(&self, store: &Arc<Store>) {
        let _ = self.store.set(Arc::clone(store));
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.epoch.shared
    }

    fn control(&self) -> &SimControlPlane {
        self.shared().control(self.controller)
    }

    fn note(&self, line: &str) {
        self.shared().with(|ledger| ledger.note(line));
    }

    async fn call<T>(
        &self,
        name: &'static str,
        subject: String,
        effect: impl Future<Output = Result<T, RpcFailure>>,
    ) -> Result<T, RpcFailure> {
        self.epoch.alive().await;
        self.note(&format!(
            "control plane of {}: {name} {subject}",
            self.controller.name()
        ));
        let fault = self.shared().next_control_call(self.controller);
        let op = Op {
            call: name,
            subject,
            number: 0,
        };
        let hooks = self.hooks(fault);
        let effect = async {
            self.epoch.alive().await;
            effect.await
        };
        let answer = tokio::time::timeout(LIMIT, hooks.around(&op, lost, effect)).await;
        self.epoch.alive().await;
        let answer = answer.unwrap_or_else(|_| Err(failure(1)));
        if let Err(failure) = &answer {
            self.note(&format!("failed: {name} {} {failure}", op.subject));
        }
        answer
    }

    fn hooks(&self, fault: Option<CallFault>) -> Hooks<RpcFailure> {
        let hooks = Hooks::default();
        if let Some(fault) = fault {
            let epoch = self.epoch.clone();
            hooks.set(move |side, _| verdict(fault, side, &epoch, failure));
        }
        hooks
    }
}

#[async_trait]
impl ControlPlane for ControlPort {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        self.epoch.alive().await;
        let shared = self.shared();
        shared.with(|ledger| {
            let name = self.controller.name();
            ledger.note(&format!("control plane of {name}: watch behind {cursor}"));
            ledger.judge_cursor(&shared.admin, self.controller, cursor);
        });
        let fault = shared.next_control_call(self.controller);
        let way = Way {
            port: self.clone(),
            open: Some((self.hooks(fault), cursor)),
            events: stream::empty().boxed(),
            queue: VecDeque::new(),
            is_over: false,
        };
        stream::unfold(way, Way::step).boxed()
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        let asked = tokio::time::Instant::now();
        let effect = self.control().desired(question);
        let answer = self.call("desired", question.key.to_string(), effect).await;
        if let Ok(answer) = &answer {
            let key = &question.key;
            self.shared()
                .with(|ledger| ledger.answer(key, answer, asked));
        }
        answer
    }

    async fn report(&self, report: &Report) -> Result<(), RpcFailure> {
        let shared = self.shared();
        let effect = async {
            shared.with(|ledger| {
                ledger.note(&format!("told: {report:?}"));
                ledger.judge_report(report);
            });
            self.control().report(report).await
        };
        self.call("report", report.key().to_string(), effect).await
    }

    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        let effect = self.control().heartbeat();
        self.call("heartbeat", String::new(), effect).await
    }
}

/// The events of one stream, on their way.
struct Way {
    port: ControlPort,
    /// Until it is open: what happens to the opening, and behind which version.
    open: Option<(Hooks<RpcFailure>, u64)>,
    events: BoxStream<'static, StreamEvent>,
    queue: VecDeque<StreamEvent>,
    is_over: bool,
}

impl Way {
    async fn step(mut self) -> Option<(StreamEvent, Self)> {
        if self.queue.is_empty() && !self.is_over {
            self.fetch().await?;
        }
        let event = self.queue.pop_front()?;
        self.port.epoch.alive().await;
        self.is_over = matches!(event, StreamEvent::Ended(_));
        match &event {
            StreamEvent::Opened => self.port.note("stream: open"),
            StreamEvent::Item(StreamItem::State(state)) => {
                let cursor = self.port.store.get().map_or(0, |store| store.cursor());
                let line = format!("stream: {} in {}", state.key, state.version);
                self.port.shared().with(|ledger| {
                    ledger.note(&line);
                    ledger.receive(state, cursor);
                });
            }
            StreamEvent::Item(StreamItem::Unnamed { version, .. }) => {
                self.port.note(&format!("stream: nothing in {version}"));
            }
            StreamEvent::Ended(end) => self.port.note(&format!("stream: ended {}", end.code)),
        }
        Some((event, self))
    }

    async fn fetch(&mut self) -> Option<()> {
        if let Some((hooks, cursor)) = self.open.take() {
            let op = Op {
                call: "watch",
                subject: cursor.to_string(),
                number: 0,
            };
            let control = self.port.control().clone();
            let opening = async { Ok(control.watch(cursor).await) };
            // A connection that is dead is noticed; one that is only silent is healthy.
            let opened = tokio::time::timeout(DEAD_AFTER, hooks.around(&op, lost, opening)).await;
            self.port.epoch.alive().await;
            match opened.unwrap_or_else(|_| Err(lost())) {
                Ok(events) => self.events = events.fuse().boxed(),
                Err(failure) => {
                    self.queue.push_back(ended(failure.code));
                    return Some(());
                }
            }
        }
        let event = self.events.next().await?;
        self.port.epoch.alive().await;
        let is_item = matches!(event, StreamEvent::Item(_));
        let fault = is_item
            .then(|| self.port.shared().next_message(self.port.controller))
            .flatten();
        match fault {
            None => self.queue.push_back(event),
            Some(MessageFault::Cut) => self.queue.push_back(ended("unavailable")),
            Some(MessageFault::CutCleanly) => self.queue.push_back(ended("ok")),
            Some(MessageFault::Delay(time)) => {
                pause(ms(time)).await;
                self.queue.push_back(event);
            }
            Some(MessageFault::Repeat) => {
                if let StreamEvent::Item(item) = &event {
                    self.queue.push_back(StreamEvent::Item(item.clone()));
                }
                self.queue.push_back(event);
            }
            Some(MessageFault::Swap) => {
                let next = self.events.next().now_or_never().flatten();
                match next {
                    Some(next @ StreamEvent::Item(_)) => self.queue.extend([next, event]),
                    next => self.queue.extend([event].into_iter().chain(next)),
                }
            }
            Some(MessageFault::Silence) => {
                pause(DEAD_AFTER).await;
                self.queue.push_back(ended("unavailable"));
            }
        }
        Some(())
    }
}

fn ended(code: &'static str) -> StreamEvent {
    StreamEvent::Ended(StreamEnd {
        code,
        message: "as planned".to_owned(),
        is_oversize: false,
    })
}

fn lost() -> RpcFailure {
    failure(0)
}

fn failure(how: u8) -> RpcFailure {
    let (kind, code) = match how % 7 {
        0 => (RpcFailureKind::Transport, "unavailable"),
        1 => (RpcFailureKind::Transport, "deadline_exceeded"),
        2 => (RpcFailureKind::Transport, "unknown"),
        3 => (RpcFailureKind::Answered, "internal"),
        4 => (RpcFailureKind::Answered, "resource_exhausted"),
        5 => (RpcFailureKind::Answered, "unauthenticated"),
        _ => (RpcFailureKind::Answered, "permission_denied"),
    };
    RpcFailure {
        kind,
        code,
        message: "as planned".to_owned(),
    }
}
