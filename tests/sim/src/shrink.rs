//! Cuts a failing plan down: delta debugging over its faults, within a number of runs.

use crate::plan::{Fault, Plan};
use crate::run::{Setup, run};

/// Runs that one failure is worth.
const RUNS: usize = 150;

/// A smaller plan that breaks the same invariant, and how it does.
pub(crate) fn shrink(setup: &Setup, violation: &str) -> (Plan, String) {
    let invariant = name(violation).to_owned();
    let mut faults = setup.plan.faults.clone();
    let mut text = violation.to_owned();
    let mut left = RUNS;
    let mut parts = 2;
    while left > 0 && !faults.is_empty() {
        let size = faults.len().div_ceil(parts);
        let mut has_shrunk = false;
        for start in (0..faults.len()).step_by(size).rev() {
            if left == 0 {
                break;
            }
            left -= 1;
            let end = (start + size).min(faults.len());
            let fewer: Vec<Fault> = [&faults[..start], &faults[end..]].concat();
            let smaller = Setup {
                plan: Plan {
                    faults: fewer.clone(),
                },
                is_loud: false,
                ..setup.clone()
            };
            if let Some(found) = run(&smaller).violation
                && name(&found) == invariant
            {
                faults = fewer;
                text = found;
                has_shrunk = true;
                break;
            }
        }
        if has_shrunk {
            parts = parts.saturating_sub(1).max(2);
        } else if size <= 1 {
            break;
        } else {
            parts = (parts * 2).min(faults.len());
        }
    }
    (Plan { faults }, text)
}

/// Which invariant a violation is about.
fn name(violation: &str) -> &str {
    let end = violation.find([':', ' ']).unwrap_or(violation.len());
    &violation[..end]
}
