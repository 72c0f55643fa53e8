//! Spans over OTLP gRPC.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tonic::transport::ClientTlsConfig;

use super::TelemetryError;
use crate::settings::{Settings, Tracing};
use crate::version::VERSION;

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
            KeyValue::new("service.version", VERSION),
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
