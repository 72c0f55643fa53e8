//! The known name that a misspelt one most likely meant.

/// The candidate with the fewest edits from `name`, unless that would be a guess.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let length = wanted.chars().count();
    let allowed = (length / 3).max(2);
    candidates
        // Each character too many is an edit: a long name is compared with long ones only.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| {
            (
                strsim::levenshtein(&wanted, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
