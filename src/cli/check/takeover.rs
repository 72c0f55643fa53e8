//! The findings of `krane check --takeover`, for a person.

use std::fmt::Write as _;

use crate::cli::output::printable;
use crate::run::take_over::Findings;

/// The findings for a person.
pub(super) fn words(findings: &Findings) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: &str| {
        let (gap, words) = words
            .strip_prefix('\n')
            .map_or(("", words), |words| ("\n", words));
        let _ = writeln!(text, "{gap}{}", printable(words));
    };
    for summary in &findings.controllers {
        let mut words = format!(
            "{:<12} {} objects with an id, {} of what was compared in place",
            summary.controller, summary.objects, summary.in_place,
        );
        if summary.pods_of_others > 0 {
            let _ = write!(
                words,
                "; {} pods that no krane made stay as they are",
                summary.pods_of_others
            );
        }
        line(&words);
    }
    if findings.changes.is_empty() {
        line("\n✔ krane would change nothing");
    } else {
        line(&format!(
            "\n‼ krane would change {}:",
            findings.changes.len()
        ));
    }
    for planned in &findings.changes {
        line(&format!("  {} {}", planned.action.words(), planned.object));
        for path in planned.paths.iter().take(8) {
            line(&format!("      {path}"));
        }
        if planned.paths.len() > 8 {
            line(&format!("      and {} more", planned.paths.len() - 8));
        }
    }
    if findings.leftovers.is_empty() {
        line("\n✔ nothing is left of another agent");
    } else {
        line(&format!(
            "\n‼ {} left of another agent; krane deletes none of them:",
            findings.leftovers.len()
        ));
    }
    for leftover in &findings.leftovers {
        line(&format!("  {}", leftover.object));
        line(&format!("      {}", leftover.why));
        line(&format!("      {}", leftover.command));
    }
    if !findings.problems.is_empty() {
        line(&format!("\n✗ {} not found out:", findings.problems.len()));
    }
    for problem in &findings.problems {
        line(&format!("  {problem}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_wrote_obeys_no_terminal() {
        let findings = Findings {
            problems: vec!["pods: \u{1b}[2J\nall is well".to_owned()],
            ..Findings::default()
        };
        insta::assert_snapshot!(words(&findings), @r"

        ✔ krane would change nothing

        ✔ nothing is left of another agent

        ✗ 1 not found out:
          pods: \u{1b}[2J\nall is well
        ");
    }
}
