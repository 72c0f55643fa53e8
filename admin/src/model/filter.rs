//! What a person types to find something.

/// Bytes of a filter that are looked at.
const LONGEST: usize = 200;
/// Words of it.
const MOST_WORDS: usize = 8;

/// Words that all have to be in a text, in any order and in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    words: Vec<String>,
}

impl Filter {
    /// What was typed, as far as anybody types.
    #[must_use]
    pub fn new(typed: &str) -> Self {
        let typed = typed
            .get(..typed.floor_char_boundary(LONGEST))
            .unwrap_or(typed);
        let words = typed.split_whitespace().take(MOST_WORDS);
        Self {
            words: words.map(str::to_lowercase).collect(),
        }
    }

    /// Whether this text has all of them.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn all_words_count_in_any_order_and_case() {
        let filter = Filter::new("  WEB  shop ");
        assert!(filter.is_in("shop/web in place"));
        assert!(!filter.is_in("shop/api"));
        assert!(Filter::new(" ").is_in(""));
    }

    #[test]
    fn nobody_makes_work_with_a_long_filter() {
        let long = Filter::new(&"ä ".repeat(10_000));
        assert_eq!(long.words.len(), 8);
        let one = Filter::new(&"ä".repeat(10_000));
        assert_eq!(one.words[0].len(), 200);
    }
}
