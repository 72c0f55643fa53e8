//! Errors as text: with their causes, each said once, and not too long for a log.

use std::error::Error;
use std::time::Duration;

/// Servers may put whole pages into a message.
pub const LONGEST_MESSAGE: usize = 1024;

/// An error and its causes.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    described(&error.to_string(), error.source())
}

/// A message and the causes behind it. Libraries repeat a cause in their own words; it is left
/// out then.
pub fn described(message: &str, source: Option<&(dyn Error + 'static)>) -> String {
    let mut text = message.to_owned();
    for cause in std::iter::successors(source, |&cause| cause.source()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
    }
    text
}

/// A text from somewhere else, with nothing in it that a terminal would obey, nor anything that
/// shows its letters in another order.
pub fn printable(text: &str) -> String {
    let escape = |character: char| {
        // C1 counts as control, too.
        if character.is_control() || is_unseen(character) {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    };
    text.chars().map(escape).collect()
}

/// What shows nothing itself, but changes how its neighbours are shown or where lines end.
const fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// A length of time in one unit; the script of the page says the same.
pub fn brief(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number and its noun.
pub fn many(count: usize, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Cuts a text to [`LONGEST_MESSAGE`] bytes, at a character.
pub fn cut(mut text: String) -> String {
    if text.len() > LONGEST_MESSAGE {
        text.truncate(text.floor_char_boundary(LONGEST_MESSAGE));
        text.push('…');
        // It may be kept for long.
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{LONGEST_MESSAGE, chain, cut, described, many, printable};

    #[derive(Debug, thiserror::Error)]
    #[error("{words}")]
    struct Step {
        words: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_that_the_error_says_itself_is_not_said_twice() {
        let cause = || io::Error::other("refused");
        let step = |words| Step {
            words,
            source: cause(),
        };
        assert_eq!(chain(&step("the call failed")), "the call failed: refused");
        assert_eq!(chain(&step("it was refused")), "it was refused");
        assert_eq!(described("", Some(&cause())), "refused");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let cut = cut("ä".repeat(LONGEST_MESSAGE));
        assert_eq!(cut.len(), LONGEST_MESSAGE + '…'.len_utf8());
        assert!(cut.ends_with("ä…"), "{cut}");
    }

    #[test]
    fn one_is_no_plural() {
        let told = [0, 1, 2].map(|count| many(count, "watch"));
        assert_eq!(told, ["0 watches", "1 watch", "2 watches"]);
        assert_eq!(many(1, "failed attempt"), "1 failed attempt");
        assert_eq!(many(2, "failed attempt"), "2 failed attempts");
    }

    #[test]
    fn nothing_that_a_terminal_would_obey_is_printed() {
        let text = "a\u{1b}[2J\u{9b}31m\u{202e}\u{2066}ü→";
        let shown = r"a\u{1b}[2J\u{9b}31m\u{202e}\u{2066}ü→";
        assert_eq!(printable(text), shown);
    }
}
