//! One trace per state, handed on from actor to actor.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::Controller;
use krane_domain::object::ObjectRef;
use krane_domain::trace::TraceContext;
use krane_ports::{StateSpan, Traces};
use parking_lot::Mutex;
use tracing::Span;

use super::harness::World;
use crate::testing::{input, wants};

/// Writes down what happens; the number of the trace is the version that began it.
#[derive(Debug, Default)]
struct Notebook(Mutex<Vec<String>>);

impl Notebook {
    fn note(&self, what: &str, state: StateSpan<'_>, trace: TraceContext) {
        let (key, version, trace) = (state.key, state.version, trace.span_id[0]);
        let line = format!("{what} {key} v{version} in {trace}");
        self.0.lock().push(line);
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().iter().filter(|it| *it == line).count()
    }
}

impl Traces for Notebook {
    fn received(&self, state: StateSpan<'_>) -> TraceContext {
        let number = u8::try_from(state.version).expect("few");
        let trace = TraceContext {
            trace_id: [number; 16],
            span_id: [number; 8],
            is_sampled: true,
        };
        self.note("received", state, trace);
        trace
    }

    fn waited(&self, state: StateSpan<'_>, parent: TraceContext, _: Duration) {
        self.note("waited", state, parent);
    }

    fn join(&self, state: StateSpan<'_>, parent: TraceContext, _: &Span) {
        self.note("joined", state, parent);
    }

    fn link(&self, state: StateSpan<'_>, earlier: TraceContext, _: &Span) {
        self.note("linked", state, earlier);
    }
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_state_goes_from_the_stream_through_every_lane_to_the_report() {
    let world = World::start().await;
    let notes = Arc::new(Notebook::default());
    world.board.trace_to(Arc::<Notebook>::clone(&notes));
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.cluster.set_pod("ns", "d1", "p1", true);
    world
        .until("reported", |world| {
            world.control_plane.last_report("d1").is_some()
        })
        .await;
    assert_eq!(notes.count("received ns/d1 v1 in 1"), 1);
    // Once for its shared objects, once for itself, and the report.
    let joined = notes.count("joined ns/d1 v1 in 1");
    assert!(joined >= 3, "{notes:?}");
    assert!(notes.count("waited ns/d1 v1 in 1") >= 2, "{notes:?}");

    world.cluster.panic_in_next_apply();
    world.control_plane.push(wants(2, input("ns", "d2")));
    world.until("applied", |world| world.cursor() == 2).await;
    assert_eq!(notes.count("received ns/d2 v2 in 2"), 1);
    assert!(notes.count("waited ns/d2 v2 in 2") >= 2, "{notes:?}");

    let workload = ObjectRef::new(Controller::Deployments.primary(), "ns", "d1");
    world.cluster.remove(&workload);
    world
        .until("repaired", |_| notes.count("linked ns/d1 v1 in 1") > 0)
        .await;
}
