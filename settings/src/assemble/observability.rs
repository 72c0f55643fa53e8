//! Logs, metrics and traces, with the variables of other programs that count here.

use std::num::NonZeroU16;

use tracing_subscriber::filter::EnvFilter;

use super::super::keys::TRACING as SECTION;
use super::super::problem::ProblemKind;
use super::super::reader::{Read, Reader};
use super::super::{LoadInput, Logging, Metrics, Observability, Tracing};

const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTLP_ENDPOINT: &str = "http://localhost:4317";
const TRACE_SAMPLE_RATE: f64 = 0.25;

pub(super) fn read(
    r: &mut Reader,
    prometheus_port: Read<u16>,
    input: &LoadInput,
) -> Read<Observability> {
    let level = r.required("observability.logging.level");
    let format = r.required("observability.logging.format");
    let sample_rate = r.required("observability.logging.sample_rate");
    let slow_threshold = r.required("observability.logging.slow_threshold");
    let tracing = tracing(r, input);
    let directives = directives(r, input);
    Ok(Observability {
        metrics: Metrics {
            prometheus_port: prometheus_port.map(NonZeroU16::new)?,
        },
        logging: Logging {
            level: level?,
            format: format?,
            sample_rate: sample_rate?,
            slow_threshold: slow_threshold?,
            directives: directives?,
        },
        tracing: tracing?,
    })
}

fn directives(r: &mut Reader, input: &LoadInput) -> Read<Option<String>> {
    const NAME: &str = "RUST_LOG";
    let Some(text) = input.env.get(NAME).filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    match EnvFilter::builder().parse(text) {
        Ok(_) => Ok(Some(text.clone())),
        Err(reason) => {
            let help = format!("set {NAME} to a list such as \"warn,krane=debug\", or unset it");
            Err(r.wrong_variable(NAME, text, ProblemKind::Malformed(reason.to_string()), help))
        }
    }
}

fn tracing(r: &mut Reader, input: &LoadInput) -> Read<Option<Tracing>> {
    const ENDPOINT: &str = "observability.tracing.endpoint";
    let present = r.has_section(SECTION);
    if present && !r.is_set(ENDPOINT) {
        match input.env.get(OTLP_VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => r.set_from_variable(ENDPOINT, OTLP_VARIABLE, text.clone()),
            None => r.set_default(ENDPOINT, OTLP_ENDPOINT.into()),
        }
    }
    if present && !r.is_set("observability.tracing.sample_rate") {
        r.set_default(
            "observability.tracing.sample_rate",
            TRACE_SAMPLE_RATE.into(),
        );
    }
    let endpoint = r.optional(ENDPOINT);
    let sample_rate = r.optional("observability.tracing.sample_rate");
    let parts = endpoint?.zip(sample_rate?).filter(|_| present);
    Ok(parts.map(|(endpoint, sample_rate)| Tracing {
        endpoint,
        sample_rate,
    }))
}
