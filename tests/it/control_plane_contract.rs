//! What every control plane owes its port: the one in memory, and the gRPC adapter in front of the
//! scripted server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod kinds;
mod worlds;

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::Controller;
use krane_ports::{Answer, Question, RpcFailureKind, StreamEvent};

use worlds::{Call, Grpc, Memory, World};

/// Runs each clause in each world of one controller.
macro_rules! contract {
    ($($module:ident: $controller:ident { $($clause:ident)+ })+) => {
        $(mod $module {
            mod in_memory {
                use super::super::*;
                $(#[tokio::test(start_paused = true)]
                async fn $clause() {
                    super::super::$clause(&Memory::new(Controller::$controller)).await;
                })+
            }
            mod over_grpc {
                use super::super::*;
                $(#[tokio::test]
                async fn $clause() {
                    super::super::$clause(&Grpc::start(Controller::$controller).await).await;
                })+
            }
        })+
    };
}

contract! {
    deployments: Deployments {
        what_is_there_comes_in_order_and_then_what_is_pushed
        a_stream_with_nothing_to_say_opens_by_itself
        a_cut_stream_ends_once_with_its_code
        a_refused_stream_ends_and_never_opens
        a_bad_state_names_its_object_and_garbage_only_its_version
        a_question_meets_the_newest_row
        a_scripted_answer_is_handed_on_and_taken_back
        a_server_s_own_error_is_answered_and_an_absent_server_is_transport
        reports_and_heartbeats_arrive_as_they_were_told
        a_refused_report_is_not_taken
        a_frozen_stream_says_nothing_and_goes_on_afterwards
        a_restored_copy_repeats_its_versions
        a_stream_nobody_reads_is_over_for_the_control_plane
    }
    sentinels: Sentinels {
        what_is_there_comes_in_order_and_then_what_is_pushed
        a_stream_with_nothing_to_say_opens_by_itself
        a_cut_stream_ends_once_with_its_code
        a_refused_stream_ends_and_never_opens
        a_bad_state_names_its_object_and_garbage_only_its_version
        a_question_meets_the_newest_row
        a_scripted_answer_is_handed_on_and_taken_back
        a_server_s_own_error_is_answered_and_an_absent_server_is_transport
        reports_and_heartbeats_arrive_as_they_were_told
        a_refused_report_is_not_taken
        a_frozen_stream_says_nothing_and_goes_on_afterwards
        a_restored_copy_repeats_its_versions
        a_stream_nobody_reads_is_over_for_the_control_plane
    }
    policies: Cilium {
        what_is_there_comes_in_order_and_then_what_is_pushed
        a_stream_with_nothing_to_say_opens_by_itself
        a_cut_stream_ends_once_with_its_code
        a_refused_stream_ends_and_never_opens
        a_bad_state_names_its_object_and_garbage_only_its_version
        a_question_meets_the_newest_row
        a_scripted_answer_is_handed_on_and_taken_back
        a_server_s_own_error_is_answered_and_an_absent_server_is_transport
        reports_and_heartbeats_arrive_as_they_were_told
        a_frozen_stream_says_nothing_and_goes_on_afterwards
        a_restored_copy_repeats_its_versions
        a_stream_nobody_reads_is_over_for_the_control_plane
    }
}

/// What no state may say.
const BAD: &str = "not an image";

/// Fails the test when what must come does not.
async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(40);
    tokio::time::timeout(limit, future)
        .await
        .expect("nothing happened in 40 s")
}

struct Reading(BoxStream<'static, StreamEvent>);

impl Reading {
    async fn begin(world: &impl World, cursor: u64) -> Self {
        let mut reading = Self(world.port().watch(cursor).await);
        assert!(matches!(reading.event().await, StreamEvent::Opened));
        reading
    }

    async fn event(&mut self) -> StreamEvent {
        within(self.0.next()).await.expect("the stream goes on")
    }

    async fn item(&mut self) -> StreamItem {
        match self.event().await {
            StreamEvent::Item(item) => item,
            other @ (StreamEvent::Opened | StreamEvent::Ended(_)) => panic!("no item: {other:?}"),
        }
    }

    async fn state(&mut self) -> State {
        match self.item().await {
            StreamItem::State(state) => state,
            StreamItem::Unnamed { .. } => panic!("names no object"),
        }
    }

    async fn end(&mut self) -> &'static str {
        match self.event().await {
            StreamEvent::Ended(end) => {
                assert!(within(self.0.next()).await.is_none(), "it ends once");
                end.code
            }
            other @ (StreamEvent::Opened | StreamEvent::Item(_)) => panic!("no end: {other:?}"),
        }
    }
}

fn question(world: &impl World, name: &str) -> Question {
    Question {
        key: world.key(name),
        id: kinds::id(world.controller(), name).into(),
    }
}

async fn what_is_there_comes_in_order_and_then_what_is_pushed(world: &impl World) {
    for number in 1..=3 {
        world.apply(&format!("app-{number}"), "image:1");
    }
    world.delete("app-1");
    let mut stream = Reading::begin(world, 1).await;
    assert_eq!(
        [stream.state().await.version, stream.state().await.version],
        [2, 3]
    );
    let deleted = stream.state().await;
    assert_eq!((deleted.version, deleted.key), (4, world.key("app-1")));
    assert_eq!(deleted.change, Ok(Change::Delete));
    world.apply("app-1", "image:2");
    let pushed = stream.state().await;
    assert_eq!(pushed.version, 5);
    assert_eq!(kinds::word(pushed.change.as_ref()), "image:2");
    assert!(pushed.size > 0);
    assert_eq!(world.cursors(), [1]);
}

/// Its headers may come hours later (D2a).
async fn a_stream_with_nothing_to_say_opens_by_itself(world: &impl World) {
    let mut stream = Reading::begin(world, 0).await;
    world.apply("app", "image:1");
    assert_eq!(stream.state().await.version, 1);
}

async fn a_cut_stream_ends_once_with_its_code(world: &impl World) {
    for code in ["unavailable", "ok"] {
        world.apply("app", "image:1");
        let mut stream = Reading::begin(world, 0).await;
        stream.state().await;
        world.cut(code);
        assert_eq!(stream.end().await, code);
    }
}

async fn a_refused_stream_ends_and_never_opens(world: &impl World) {
    world.apply("app", "image:1");
    world.fail(Call::Watch, "permission_denied");
    let mut refused = Reading(world.port().watch(0).await);
    assert_eq!(refused.end().await, "permission_denied");
    let mut stream = Reading::begin(world, 0).await;
    assert_eq!(stream.state().await.version, 1);
}

async fn a_bad_state_names_its_object_and_garbage_only_its_version(world: &impl World) {
    world.apply("app", BAD);
    world.garbage();
    let mut stream = Reading::begin(world, 0).await;
    let bad = stream.state().await;
    assert_eq!((bad.key, bad.version), (world.key("app"), 1));
    let field = kinds::bad_field(world.controller());
    assert_eq!(bad.change.unwrap_err().field, field);
    match stream.item().await {
        StreamItem::Unnamed { version, reason } => {
            assert_eq!(version, 2);
            assert!(!reason.is_empty());
        }
        StreamItem::State(state) => panic!("names {}", state.key),
    }
}

async fn a_question_meets_the_newest_row(world: &impl World) {
    let port = world.port();
    let ask = async || within(port.desired(&question(world, "app"))).await;
    assert_eq!(ask().await, Ok(Answer::NotFound));
    world.apply("app", "image:1");
    world.apply("app", "image:2");
    match ask().await.unwrap() {
        Answer::State { key, change } => {
            assert_eq!(key, world.key("app"));
            assert_eq!(kinds::word(change.as_ref()), "image:2");
        }
        other @ (Answer::NotFound | Answer::Empty) => panic!("{other:?}"),
    }
    world.delete("app");
    let gone = Answer::State {
        key: world.key("app"),
        change: Ok(Change::Delete),
    };
    assert_eq!(ask().await, Ok(gone));
    world.forget("app");
    assert_eq!(ask().await, Ok(Answer::NotFound));
}

async fn a_scripted_answer_is_handed_on_and_taken_back(world: &impl World) {
    let port = world.port();
    let ask = async || within(port.desired(&question(world, "app"))).await;
    world.apply("app", "image:1");
    world.answer_empty("app", true);
    assert_eq!(ask().await, Ok(Answer::Empty));
    world.answer_empty("app", false);
    assert!(matches!(ask().await, Ok(Answer::State { .. })));
}

async fn a_server_s_own_error_is_answered_and_an_absent_server_is_transport(world: &impl World) {
    let port = world.port();
    world.fail(Call::Heartbeat, "internal");
    let failure = within(port.heartbeat()).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Answered, "internal")
    );
    within(port.heartbeat()).await.unwrap();
    let mut stream = Reading::begin(world, 0).await;
    world.take_away().await;
    // A broken connection has several names.
    assert_ne!(stream.end().await, "ok");
    let failure = within(port.heartbeat()).await.unwrap_err();
    assert_eq!(failure.kind, RpcFailureKind::Transport);
    let mut refused = Reading(port.watch(0).await);
    assert_ne!(refused.end().await, "ok");
    world.give_back().await;
    within(port.heartbeat()).await.unwrap();
}

async fn reports_and_heartbeats_arrive_as_they_were_told(world: &impl World) {
    let port = world.port();
    let told = kinds::reports(world.controller());
    for report in &told {
        within(port.report(report)).await.unwrap();
    }
    assert_eq!(world.reports(), told);
    within(port.heartbeat()).await.unwrap();
    within(port.heartbeat()).await.unwrap();
    assert_eq!(world.heartbeats(), 2);
}

async fn a_refused_report_is_not_taken(world: &impl World) {
    let port = world.port();
    let gone = kinds::reports(world.controller()).pop().unwrap();
    world.fail(Call::Report, "resource_exhausted");
    let failure = within(port.report(&gone)).await.unwrap_err();
    assert_eq!(failure.code, "resource_exhausted");
    assert!(world.reports().is_empty());
    within(port.report(&gone)).await.unwrap();
    assert_eq!(world.reports(), [gone]);
}

async fn a_frozen_stream_says_nothing_and_goes_on_afterwards(world: &impl World) {
    let mut stream = Reading::begin(world, 0).await;
    world.freeze();
    world.apply("app", "image:1");
    let silence = tokio::time::timeout(Duration::from_millis(500), stream.0.next());
    assert!(silence.await.is_err());
    world.thaw();
    assert_eq!(stream.state().await.version, 1);
}

async fn a_restored_copy_repeats_its_versions(world: &impl World) {
    world.apply("old", "image:1");
    let restore = world.backup();
    world.apply("lost", "image:1");
    restore();
    world.apply("new", "image:1");
    let mut stream = Reading::begin(world, 0).await;
    let first = stream.state().await;
    assert_eq!((first.key, first.version), (world.key("old"), 1));
    let second = stream.state().await;
    assert_eq!((second.key, second.version), (world.key("new"), 2));
    let lost = within(world.port().desired(&question(world, "lost"))).await;
    assert_eq!(lost, Ok(Answer::NotFound));
}

async fn a_stream_nobody_reads_is_over_for_the_control_plane(world: &impl World) {
    let stream = Reading::begin(world, 0).await;
    assert_eq!(world.open_watches(), 1);
    drop(stream);
    within(world.no_watch_is_open()).await;
}
