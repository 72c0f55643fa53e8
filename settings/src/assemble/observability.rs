//! Logs and traces, with the variables of other programs that count here.

use tracing_subscriber::filter::EnvFilter;

use super::super::Tracing;
use super::super::keys::TRACING as SECTION;
use super::super::problem::ProblemKind;
use super::super::reader::{Group, Read, Reader};

const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTLP_ENDPOINT: &str = "http://localhost:4317";
const TRACE_SAMPLE_RATE: f64 = 0.25;

pub(in super::super) fn directives(r: &mut Reader<'_>, _: &str) -> Read<Option<String>> {
    const NAME: &str = "RUST_LOG";
    let text = r.input.env.get(NAME);
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
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

/// Defaults that only count when the section is present, so the default layer cannot hold them.
pub(super) fn prepare_tracing(r: &mut Reader<'_>) {
    let [endpoint, sample_rate] = [
        "observability.tracing.endpoint",
        "observability.tracing.sample_rate",
    ];
    if !r.has_section(SECTION) {
        return;
    }
    if !r.is_set(endpoint) {
        let other = r.input.env.get(OTLP_VARIABLE);
        match other.filter(|text| !text.is_empty()) {
            Some(text) => r.set_from_variable(endpoint, OTLP_VARIABLE, text.clone()),
            None => r.set_default(endpoint, OTLP_ENDPOINT.into()),
        }
    }
    if !r.is_set(sample_rate) {
        r.set_default(sample_rate, TRACE_SAMPLE_RATE.into());
    }
}

pub(in super::super) fn tracing(r: &mut Reader<'_>, section: &str) -> Read<Option<Tracing>> {
    let parts = Tracing::parts(r)?;
    Ok(parts.filter(|_| r.has_section(section)))
}
