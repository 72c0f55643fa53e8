//! Spans over OTLP gRPC.
//!
//! They wait in a queue of bounded length for a thread of their own; what does not fit is dropped.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::trace::TraceContext;
use krane_ports::{StateSpan, Traces};
use krane_settings::{Settings, Tracing};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tonic::transport::ClientTlsConfig;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::TelemetryError;

/// How long one batch may take.
const EXPORT_LIMIT: Duration = Duration::from_secs(5);

/// Batches spans in a thread of its own and sends them to the collector.
pub(super) fn provider(
    tracing: &Tracing,
    settings: &Settings,
) -> Result<SdkTracerProvider, TelemetryError> {
    let mut exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(tracing.endpoint.as_str())
        .with_timeout(EXPORT_LIMIT);
    if tracing.endpoint.is_tls() {
        // Without it the exporter trusts nobody and still builds.
        exporter = exporter.with_tls_config(ClientTlsConfig::new().with_native_roots());
    }
    let exporter = exporter.build().map_err(TelemetryError::Exporter)?;
    let sampler = Sampler::TraceIdRatioBased(tracing.sample_rate);
    let resource = Resource::builder()
        .with_service_name("krane")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", settings.instance_id.clone()),
            KeyValue::new("cloud.provider", settings.region.platform.clone()),
            KeyValue::new("cloud.region", settings.region.name.clone()),
        ])
        .build();
    Ok(SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

/// The spans of states, beside those that come from log spans.
pub(super) fn of_states(provider: &SdkTracerProvider) -> Arc<dyn Traces> {
    Arc::new(StateTraces(provider.tracer("krane")))
}

#[derive(Debug)]
struct StateTraces(SdkTracer);

impl StateTraces {
    fn builder(&self, name: &'static str, state: StateSpan<'_>) -> SpanBuilder {
        let attributes = attributes(state);
        self.0.span_builder(name).with_attributes(attributes)
    }
}

impl Traces for StateTraces {
    fn received(&self, state: StateSpan<'_>) -> TraceContext {
        let builder = self.builder("received", state);
        let mut span = self.0.build_with_context(builder, &Context::new());
        span.end();
        let context = span.span_context();
        TraceContext {
            trace_id: context.trace_id().to_bytes(),
            span_id: context.span_id().to_bytes(),
            is_sampled: context.is_sampled(),
        }
    }

    fn waited(&self, state: StateSpan<'_>, parent: TraceContext, time: Duration) {
        let now = opentelemetry::time::now();
        let began = now.checked_sub(time).unwrap_or(now);
        let builder = self.builder("wait", state).with_start_time(began);
        let mut span = self.0.build_with_context(builder, &remote(parent));
        span.end_with_timestamp(now);
    }

    fn join(&self, state: StateSpan<'_>, parent: TraceContext, span: &Span) {
        // Fails only where the span goes to no collector.
        let _ = span.set_parent(remote(parent));
        name(state, span);
    }

    fn link(&self, state: StateSpan<'_>, earlier: TraceContext, span: &Span) {
        span.add_link(span_context(earlier));
        name(state, span);
    }
}

fn attributes(state: StateSpan<'_>) -> [KeyValue; 4] {
    [
        KeyValue::new("controller", state.controller.name()),
        KeyValue::new("namespace", Arc::clone(&state.key.namespace)),
        KeyValue::new("name", Arc::clone(&state.key.name)),
        KeyValue::new("version", i64::try_from(state.version).unwrap_or(i64::MAX)),
    ]
}

/// Log lines within the span name the object in their own way.
fn name(state: StateSpan<'_>, span: &Span) {
    span.set_attribute("namespace", Arc::clone(&state.key.namespace));
    span.set_attribute("name", Arc::clone(&state.key.name));
}

fn remote(context: TraceContext) -> Context {
    Context::new().with_remote_span_context(span_context(context))
}

fn span_context(context: TraceContext) -> SpanContext {
    let flags = if context.is_sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::default()
    };
    SpanContext::new(
        TraceId::from_bytes(context.trace_id),
        SpanId::from_bytes(context.span_id),
        flags,
        true,
        TraceState::default(),
    )
}
