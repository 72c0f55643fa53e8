//! The known name that a misspelt one most likely meant.

/// The candidate with the fewest edits from `name`, unless that would be a guess.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let closest = candidates
        .map(|candidate| (edits(&wanted, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let allowed = (name.chars().count() / 3).max(2);
    (closest.0 <= allowed).then_some(closest.1)
}

/// Insertions, deletions and replacements that turn `from` into `to`.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, from_char) in from.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to_char) in row.iter_mut().skip(1).zip(&to) {
            let replaced = diagonal + usize::from(from_char != *to_char);
            diagonal = *cell;
            left = replaced.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
