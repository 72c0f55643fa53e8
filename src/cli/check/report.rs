//! The report of `krane check`, for a person and for a program.

use std::fmt::Write as _;

use crate::cli::output::printable;
use crate::preflight::findings::{Finding, Report, State};

/// One JSON document.
pub(super) fn json(report: &Report) -> String {
    format!("{:#}\n", serde_json::json!(report))
}

/// A block for each group and a line for each finding; servers may have written parts of them.
pub(super) fn words(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: &str| {
        let _ = writeln!(text, "{words}");
    };
    for group in report
        .findings
        .chunk_by(|one, other| one.group == other.group)
    {
        line(group.first().map_or("", |finding| finding.group.heading()));
        for finding in group {
            let Finding {
                state,
                message,
                why,
                fix,
                code,
                docs,
                ..
            } = finding;
            line(&format!("  {} {}", state.mark(), printable(message)));
            if *state == State::Pass || *state == State::Skip {
                continue;
            }
            if let Some(why) = why {
                line(&format!("      why   {}", printable(why)));
            }
            if let Some(fix) = fix {
                line(&format!("      fix   {}", printable(fix)));
            }
            if let Some((code, docs)) = code.zip(docs.as_ref()) {
                line(&format!("      more  {code}, {docs}"));
            }
        }
    }
    let summary = report.summary;
    let warnings = if summary.warnings == 1 {
        "warning"
    } else {
        "warnings"
    };
    let parts: Vec<String> = [
        (summary.failed, "failed"),
        (summary.warnings, warnings),
        (summary.passed, "passed"),
        (summary.skipped, "not looked at"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{number} {what}"))
    .collect();
    let mark = match (summary.failed, summary.warnings) {
        (0, 0) => State::Pass,
        (0, _) => State::Warn,
        (_, _) => State::Fail,
    };
    line(&format!("\n{} {}", mark.mark(), parts.join(", ")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::findings::Group;

    #[test]
    fn a_report_is_lines_below_their_groups() {
        let failed = Finding::fail(Group::Network, "a", "krane::check::dns", "no\x1b address")
            .because("no such host")
            .fix("correct it");
        let report = Report::new(vec![
            Finding::pass(Group::Time, "b", "the clock agrees"),
            failed,
            Finding::skip(Group::Network, "c", "no address"),
        ]);
        insta::assert_snapshot!(words(&report), @r"
        network
          ✗ no\u{1b} address
              why   no such host
              fix   correct it
              more  krane::check::dns, docs/errors.md#check-dns
          - c not looked at: no address
        time
          ✔ the clock agrees

        ✗ 1 failed, 1 passed, 1 not looked at
        ");
    }
}
