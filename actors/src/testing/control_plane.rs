//! A small control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use krane_domain::desired::{State, StreamItem};
use krane_domain::report::Report;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use krane_ports::{
    Answer, ControlPlane, Question, RpcFailure, RpcFailureKind, StreamEnd, StreamEvent,
};

type Script = Box<dyn FnMut(&Question) -> Option<Result<Answer, RpcFailure>> + Send>;

#[derive(Default)]
struct World {
    rows: BTreeMap<u64, State>,
    streams: Vec<mpsc::UnboundedSender<StreamEvent>>,
    cursors: Vec<u64>,
    reports: Vec<Report>,
    answers: BTreeMap<Arc<str>, Answer>,
    script: Option<Script>,
    questions: Vec<(Question, Instant)>,
    refused: BTreeSet<Arc<str>>,
    answer_time: Duration,
    report_time: Duration,
    reporting: usize,
    most_reporting: usize,
    failure: Option<RpcFailure>,
    heartbeats: usize,
    watch_panics: bool,
}

impl World {
    /// What the newest row says of an object.
    fn newest(&self, question: &Question) -> Answer {
        let newest = self
            .rows
            .values()
            .rev()
            .find(|state| state.key == question.key);
        newest.map_or(Answer::NotFound, |state| Answer::State {
            key: state.key.clone(),
            change: state.change.clone(),
        })
    }
}

/// A control plane in memory. It answers with the newest row unless told otherwise.
#[derive(Clone, Default)]
pub(crate) struct FakeControlPlane {
    world: Arc<Mutex<World>>,
}

impl FakeControlPlane {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "given away, to read as sending does"
    )]
    pub(crate) fn push(&self, state: State) {
        let mut world = self.world.lock();
        world.rows.insert(state.version, state.clone());
        world.streams.retain(|stream| {
            let item = StreamEvent::Item(StreamItem::State(state.clone()));
            stream.send(item).is_ok()
        });
    }

    /// These are its rows from now on. No stream is told.
    pub(crate) fn restore(&self, states: impl IntoIterator<Item = State>) {
        let rows = states.into_iter().map(|state| (state.version, state));
        self.world.lock().rows = rows.collect();
    }

    pub(crate) fn cut(&self, code: &'static str) {
        let end = StreamEnd {
            code,
            message: "cut by the test".to_owned(),
            is_oversize: false,
        };
        for stream in self.world.lock().streams.drain(..) {
            let _ = stream.send(StreamEvent::Ended(end.clone()));
        }
    }

    pub(crate) fn answer(&self, id: &str, answer: Answer) {
        self.world.lock().answers.insert(id.into(), answer);
    }

    /// This decides what is answered from now on; nothing leaves it to the rows.
    pub(crate) fn answer_as(
        &self,
        script: impl FnMut(&Question) -> Option<Result<Answer, RpcFailure>> + Send + 'static,
    ) {
        self.world.lock().script = Some(Box::new(script));
    }

    pub(crate) fn fail(&self, kind: Option<RpcFailureKind>) {
        self.world.lock().failure = kind.map(|kind| RpcFailure {
            kind,
            code: "unavailable",
            message: "as the test wants it".to_owned(),
        });
    }

    /// Reading the next stream panics.
    pub(crate) fn panic_in_next_watch(&self) {
        self.world.lock().watch_panics = true;
    }

    pub(crate) fn cursors(&self) -> Vec<u64> {
        self.world.lock().cursors.clone()
    }

    pub(crate) fn reports(&self) -> Vec<Report> {
        self.world.lock().reports.clone()
    }

    pub(crate) fn last_report(&self, name: &str) -> Option<Report> {
        let world = self.world.lock();
        world
            .reports
            .iter()
            .rev()
            .find(|report| *report.key().name == *name)
            .cloned()
    }

    pub(crate) fn questions(&self) -> usize {
        self.world.lock().questions.len()
    }

    /// When an object was asked about.
    pub(crate) fn asked(&self, id: &str) -> Vec<Instant> {
        let world = self.world.lock();
        let about = world.questions.iter();
        let about = about.filter(|(question, _)| *question.id == *id);
        about.map(|(_, at)| *at).collect()
    }

    /// Every question about this object is answered with an error.
    pub(crate) fn refuse_question(&self, id: &str) {
        self.world.lock().refused.insert(id.into());
    }

    /// Answers take this long, and say what was so when the question came.
    pub(crate) fn set_answer_time(&self, time: Duration) {
        self.world.lock().answer_time = time;
    }

    pub(crate) fn set_report_time(&self, time: Duration) {
        self.world.lock().report_time = time;
    }

    /// Reports under way.
    pub(crate) fn reporting(&self) -> usize {
        self.world.lock().reporting
    }

    /// The most reports that were under way at once.
    pub(crate) fn most_reporting(&self) -> usize {
        self.world.lock().most_reporting
    }

    pub(crate) fn heartbeats(&self) -> usize {
        self.world.lock().heartbeats
    }

    fn check(&self) -> Result<(), RpcFailure> {
        self.world.lock().failure.clone().map_or(Ok(()), Err)
    }
}

/// A report under way, also when its sender dies meanwhile.
struct Reporting(Arc<Mutex<World>>);

impl Drop for Reporting {
    fn drop(&mut self) {
        self.0.lock().reporting -= 1;
    }
}

async fn taking(time: Duration) {
    if !time.is_zero() {
        super::pass(time).await;
    }
}

#[async_trait]
impl ControlPlane for FakeControlPlane {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        let mut world = self.world.lock();
        world.cursors.push(cursor);
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's script is as long as the test"
        )]
        let (sender, receiver) = mpsc::unbounded_channel();
        if let Some(failure) = &world.failure {
            let _ = sender.send(StreamEvent::Ended(StreamEnd {
                code: failure.code,
                message: failure.message.clone(),
                is_oversize: false,
            }));
        } else {
            let _ = sender.send(StreamEvent::Opened);
            for state in world
                .rows
                .range(cursor + 1..)
                .map(|(_, state)| state.clone())
            {
                let _ = sender.send(StreamEvent::Item(StreamItem::State(state)));
            }
            world.streams.push(sender);
        }
        if std::mem::take(&mut world.watch_panics) {
            return futures::stream::poll_fn(|_| panic!("as the test wants it")).boxed();
        }
        futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|event| (event, receiver))
        })
        .boxed()
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        self.check()?;
        let (answer, time) = {
            let mut world = self.world.lock();
            world.questions.push((question.clone(), Instant::now()));
            if let Some(answer) = world.script.as_mut().and_then(|script| script(question)) {
                return answer;
            }
            if world.refused.contains(&question.id) {
                return Err(RpcFailure {
                    kind: RpcFailureKind::Answered,
                    code: "internal",
                    message: "as the test wants it".to_owned(),
                });
            }
            let answer = world.answers.get(&question.id).cloned();
            let answer = answer.unwrap_or_else(|| world.newest(question));
            (answer, world.answer_time)
        };
        taking(time).await;
        Ok(answer)
    }

    async fn report(&self, report: &Report) -> Result<(), RpcFailure> {
        self.check()?;
        let time = {
            let mut world = self.world.lock();
            world.reporting += 1;
            world.most_reporting = world.most_reporting.max(world.reporting);
            world.report_time
        };
        let _reporting = Reporting(Arc::clone(&self.world));
        taking(time).await;
        self.world.lock().reports.push(report.clone());
        Ok(())
    }

    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        self.check()?;
        self.world.lock().heartbeats += 1;
        Ok(())
    }
}
