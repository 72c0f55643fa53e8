//! The port itself, without a socket: it lives on tokio's clock, paused or not, and its only
//! chance is a seed.

mod reader;
mod rows;
mod script;
mod shared;
mod told;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::report::Report;
use krane_ports::{Answer, ControlPlane, Question, RpcFailure, RpcFailureKind, StreamEvent};
pub use rows::Order;
pub use script::{Backup, Reply};
pub use shared::Call;
use shared::{Inner, Shared};
pub use told::{Asked, Told, ToldReport, Watched};

use crate::hooks::{Hooks, Op};

/// A call without an answer fails after this time, as the real adapter's do.
pub const CALL_LIMIT: Duration = Duration::from_secs(30);

/// A stream without a message is taken for open after this time, as by the real adapter.
pub const OPEN_AFTER: Duration = Duration::from_secs(1);

/// One controller's control plane in memory. Clones are the same one.
///
/// ```
/// # use krane_sim::control_plane::SimControlPlane;
/// # use krane_domain::ids::ObjectKey;
/// let control = SimControlPlane::new(7);
/// let web = ObjectKey::new("ws", "web");
/// assert_eq!(control.delete(&web), 1);
/// control.cut_streams("unavailable");
/// assert!(control.look(|told| told.reports.is_empty()));
/// ```
#[derive(Clone, Debug)]
pub struct SimControlPlane {
    shared: Arc<Shared>,
    hooks: Hooks<RpcFailure>,
}

impl SimControlPlane {
    /// One that wants nothing yet. The seed is that of [`Order::Shuffled`].
    pub fn new(seed: u64) -> Self {
        Self {
            shared: Arc::new(Shared::new(seed)),
            hooks: Hooks::default(),
        }
    }

    /// What is asked about every call.
    pub fn hooks(&self) -> &Hooks<RpcFailure> {
        &self.hooks
    }

    /// A call that is answered once, by `serve` when it arrives.
    async fn call<T>(
        &self,
        call: Call,
        subject: String,
        serve: impl Fn(&mut Inner) -> Served<T>,
    ) -> Result<T, RpcFailure> {
        let op = Op {
            call: call.name(),
            subject,
            number: self.shared.number(),
        };
        let work = async {
            self.shared.passable().await?;
            let served = self.shared.change(|inner| match inner.faults.take(call) {
                Some(failure) => Served::Answer(Err(failure)),
                None => serve(inner),
            });
            self.shared.delay(call).await;
            match served {
                Served::Answer(answer) => answer,
                Served::Silence => pending().await,
            }
        };
        let lost = || transport("unavailable", "the answer was lost on the way");
        let answered = self.hooks.around(&op, lost, work);
        match tokio::time::timeout(CALL_LIMIT, answered).await {
            Ok(answer) => answer,
            Err(_) => Err(transport("deadline_exceeded", "no answer in time")),
        }
    }
}

/// What becomes of a call that arrived.
enum Served<T> {
    Answer(Result<T, RpcFailure>),
    Silence,
}

#[async_trait]
impl ControlPlane for SimControlPlane {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        reader::stream(Arc::clone(&self.shared), self.hooks.clone(), cursor)
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        self.call(Call::Desired, question.key.to_string(), |inner| {
            inner.told.asked(question);
            match inner.answers.get(&question.key) {
                Some(Reply::Answer(answer)) => Served::Answer(Ok(answer.clone())),
                Some(Reply::Failure(failure)) => Served::Answer(Err(failure.clone())),
                Some(Reply::Silence) => Served::Silence,
                None => Served::Answer(Ok(inner.rows.answer(&question.key))),
            }
        })
        .await
    }

    async fn report(&self, report: &Report) -> Result<(), RpcFailure> {
        self.call(Call::Report, report.key().to_string(), |inner| {
            inner.told.reported(report);
            Served::Answer(Ok(()))
        })
        .await
    }

    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        self.call(Call::Heartbeat, String::new(), |inner| {
            inner.told.beat();
            Served::Answer(Ok(()))
        })
        .await
    }
}

/// The failure of a call that the server itself answers with a code.
pub fn answered(code: &'static str) -> RpcFailure {
    RpcFailure {
        kind: RpcFailureKind::Answered,
        code,
        message: "the control plane refuses this on purpose".to_owned(),
    }
}

/// The failure of a call that does not get through.
pub fn unreachable() -> RpcFailure {
    transport("unavailable", "the control plane is away")
}

fn transport(code: &'static str, message: &str) -> RpcFailure {
    RpcFailure {
        kind: RpcFailureKind::Transport,
        code,
        message: message.to_owned(),
    }
}
