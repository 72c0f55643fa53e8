//! Cuts an input down. proptest takes away breakages, but whatever is left of them moves all places
//! behind it; here single bytes go.

use std::time::{Duration, Instant};

/// What the search may take: an input that hangs costs much each time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The input without every piece that can go while it is still at fault: no single byte of the
/// result can go, unless time ran out first.
pub(crate) fn smallest(mut input: Vec<u8>, is_at_fault: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let start = Instant::now();
    let mut piece = input.len().div_ceil(2);
    while piece > 0 {
        let (mut at, mut anything_went) = (0, false);
        while at < input.len() {
            if start.elapsed() > PATIENCE {
                return input;
            }
            let end = (at + piece).min(input.len());
            let rest = [&input[..at], &input[end..]].concat();
            if is_at_fault(&rest) {
                (input, anything_went) = (rest, true);
            } else {
                at = end;
            }
        }
        // What went may have held something else in its place.
        if !(piece == 1 && anything_went) {
            piece /= 2;
        }
    }
    input
}
