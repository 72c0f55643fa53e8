//! What a sentinel reads at its start: TOML, in one variable.

use std::fmt::Write;

use super::DesiredSentinel;
use super::form::{Config, Form};
use crate::kinds::Rules;

/// The configuration, byte for byte as sentinels have always been given it.
///
/// `${…}` is for the sentinel, which fills it in from its own environment.
pub(super) fn config(desired: &DesiredSentinel, rules: &Rules, form: &Form) -> String {
    let has = |since: Config| form.config >= since;
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for (key, value) in [
        ("sentinel_id", &desired.sentinel_id),
        ("workspace_id", &desired.workspace_id),
        ("environment_id", &desired.environment_id),
        ("platform", &rules.region.platform),
        ("region", &rules.region.name),
    ] {
        line(&format!("{key} = {}", literal(value)));
    }
    line("http_port = 8040");
    if has(Config::Tracing) {
        line("request_timeout = \"15m0s\"");
    }
    line("\n[observability]");
    if has(Config::Tracing) {
        line("  [observability.tracing]\n    sample_rate = 0.25");
    }
    line("  [observability.logging]\n    sample_rate = 1.0\n    slow_threshold = \"1s\"");
    if has(Config::Tracing) {
        line("  [observability.metrics]\n    prometheus_port = 9090");
    }
    line("\n[database]\n  primary = \"${UNKEY_DATABASE_PRIMARY}\"");
    line("  readonly_replica = \"${UNKEY_DATABASE_REPLICA}\"");
    line("\n[clickhouse]\n  url = \"${UNKEY_CLICKHOUSE_URL}\"");
    if has(Config::Complete) {
        line("  batch_size = 0\n  buffer_size = 0\n  consumers = 0");
    }
    line("\n[redis]\n  url = \"${UNKEY_REDIS_URL}\"");
    if has(Config::Tracing) {
        line("\n[pprof]\n  username = \"${UNKEY_PPROF_USERNAME}\"");
        line("  password = \"${UNKEY_PPROF_PASSWORD}\"");
    }
    if has(Config::Complete) {
        line("  port = 0");
    }
    text
}

/// A TOML string of this text, which also the kubelet leaves alone: it replaces `$(NAME)` (D17).
fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '$' => literal.push_str("$$"),
            control if control.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(literal, "\\u{:04X}", u32::from(control));
            }
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::literal;

    proptest! {
        /// Whatever a region is called, the sentinel reads that.
        #[test]
        fn every_text_comes_back_from_its_literal(text in any::<String>()) {
            let document = format!("x = {}", literal(&text).replace("$$", "$"));
            let read: toml::Table = document.parse().expect("TOML");
            prop_assert_eq!(read["x"].as_str(), Some(&*text));
        }
    }
}
