use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, ObjectKey};
use krane_ports::StateSpan;
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use parking_lot::Mutex;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

use super::{ends_in_time, settings, with_a_stopped_clock};
use crate::{Telemetry, traces};

#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().extend(batch);
        Ok(())
    }
}

/// The spans of a state that is received, fails once, is applied, reported and repaired later.
fn story(rate: f64) -> Vec<SpanData> {
    let kept = Kept::default();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(rate)));
    let provider = SdkTracerProvider::builder()
        .with_sampler(sampler)
        .with_simple_exporter(kept.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("krane"));
    let of_states = traces::of_states(&provider);
    let key = ObjectKey::new("ws-1", "app-1");
    let state = StateSpan {
        controller: Controller::Deployments,
        key: &key,
        version: 812,
    };
    tracing::subscriber::with_default(Registry::default().with(layer), || {
        let trace = of_states.received(state);
        for _ in 0..2 {
            of_states.waited(state, trace, Duration::from_secs(3));
            let lane = tracing::info_span!("apply");
            of_states.join(state, trace, &lane);
            lane.in_scope(|| tracing::info_span!("request", verb = "apply").in_scope(|| {}));
        }
        let report = tracing::info_span!("report");
        of_states.join(state, trace, &report);
        drop(report);
        let repair = tracing::info_span!("apply");
        of_states.link(state, trace, &repair);
    });
    kept.0.lock().clone()
}

#[test]
fn every_attempt_and_the_report_are_spans_of_the_trace_that_the_receipt_began() {
    let spans = story(1.0);
    let names: Vec<_> = spans.iter().map(|span| span.name.as_ref()).collect();
    let expected = [
        "received", "wait", "request", "apply", "wait", "request", "apply", "report", "apply",
    ];
    assert_eq!(names, expected);
    let (root, repair) = (&spans[0], &spans[8]);
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    let (trace, root_id) = (root.span_context.trace_id(), root.span_context.span_id());
    for span in &spans[1..8] {
        assert_eq!(span.span_context.trace_id(), trace, "{}", span.name);
        if span.name == "request" {
            assert_ne!(span.parent_span_id, root_id);
        } else {
            assert_eq!(span.parent_span_id, root_id, "{}", span.name);
        }
    }
    let waited = spans[1].end_time.duration_since(spans[1].start_time);
    assert_eq!(waited.unwrap(), Duration::from_secs(3));
    assert_ne!(
        repair.span_context.trace_id(),
        trace,
        "a repair is another story"
    );
    assert_eq!(repair.links.links[0].span_context.span_id(), root_id);
    let has = |key: &str, value: &str| {
        let mut attributes = root.attributes.iter();
        attributes.any(|it| it.key.as_str() == key && it.value.as_str() == value)
    };
    assert!(has("controller", "deployments") && has("namespace", "ws-1"));
    assert!(has("name", "app-1") && has("version", "812"));
}

#[test]
fn a_trace_that_is_not_kept_keeps_none_of_its_spans() {
    let names = |rate| -> Vec<_> {
        let spans = story(rate).into_iter();
        spans.map(|span| span.name.to_string()).collect()
    };
    assert!(names(0.0).is_empty());
}

#[tokio::test]
async fn spans_arrive_at_a_collector() {
    let collector = krane_testharness::Collector::start().await.unwrap();
    let settings = settings(&[
        ("observability.tracing.endpoint", &collector.url()),
        ("observability.tracing.sample_rate", "1"),
    ]);
    let tracing = settings.observability.tracing.as_ref().unwrap();
    let provider = traces::provider(tracing, &settings).unwrap();
    let key = ObjectKey::new("ws-1", "app-1");
    traces::of_states(&provider).received(StateSpan {
        controller: Controller::Deployments,
        key: &key,
        version: 812,
    });
    let provider = Some(provider);
    Telemetry { provider }.shutdown().await;
    let text = collector.text();
    for word in ["received", "ws-1", "app-1", "krane", "us-east-1"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

/// A full queue drops; nobody waits for a collector, whether it is away or never answers.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a span that waits would hold up a real thread, for a real time"
)]
fn a_flood_of_spans_to_nobody_delays_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for endpoint in [silent.as_str(), "http://127.0.0.1:1"] {
        let settings = settings(&[
            ("observability.tracing.endpoint", endpoint),
            ("observability.tracing.sample_rate", "1"),
        ]);
        let runtime = with_a_stopped_clock();
        runtime.block_on(async {
            let tracing = settings.observability.tracing.as_ref().unwrap();
            let provider = traces::provider(tracing, &settings).unwrap();
            let of_states = traces::of_states(&provider);
            let key = ObjectKey::new("ws-1", "app-1");
            let began = std::time::Instant::now();
            for version in 0..100_000 {
                of_states.received(StateSpan {
                    controller: Controller::Deployments,
                    key: &key,
                    version,
                });
            }
            let flooded = began.elapsed();
            let provider = Some(provider);
            println!("{endpoint}: 100,000 spans in {flooded:?}");
            assert!(flooded < Duration::from_secs(20), "{flooded:?}");
            ends_in_time(Telemetry { provider }, endpoint).await;
        });
        runtime.shutdown_background();
    }
}
