//! Stops repeating an apply that admission undoes every time.

use super::difference::{Difference, DifferenceKind};
use super::{compare, worth_a_write};
use crate::canonical;
use crate::object::{LiveObject, Rendered};

/// What an apply of ours did not achieve: the same attempt is not made again.
///
/// No managed field shows that admission rewrote a value, so the difference stays for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseMemory {
    rendered: u64,
    left: Vec<Left>,
}

/// A difference that was left: where, how, and the hash of the live value.
type Left = (String, DifferenceKind, u64);

impl FuseMemory {
    /// What the answer to our own apply still lacks; `None` when it is what was rendered.
    pub fn after_apply(rendered: &Rendered, answer: &LiveObject) -> Option<Self> {
        let differences = worth_a_write(compare::differences(rendered, &answer.value()));
        (!differences.is_empty()).then(|| Self {
            rendered: canonical::hash64(&rendered.body),
            left: left(&differences),
        })
    }

    /// Whether the same rendering met the same differences with the same live values before.
    pub(super) fn covers(&self, rendered: &Rendered, differences: &[Difference]) -> bool {
        self.left == left(differences) && self.rendered == canonical::hash64(&rendered.body)
    }
}

fn left(differences: &[Difference]) -> Vec<Left> {
    differences
        .iter()
        .map(|difference| {
            (
                difference.path.clone(),
                difference.kind,
                difference.live_hash,
            )
        })
        .collect()
}
