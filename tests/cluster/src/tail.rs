//! The end of a log file, for error messages.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

const MAX_BYTES: u64 = 16 * 1024;
const MAX_LINES: usize = 15;
const MAX_LINE: usize = 400;

/// The last lines of a file, shortened; an unreadable file says so instead.
pub(crate) fn tail_of(path: &Path) -> String {
    match read_end(path) {
        Ok(text) => last_lines(&text),
        Err(error) => format!("(no log at {}: {error})", path.display()),
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .rev()
        .take(MAX_LINES)
        .map(|line| line.chars().take(MAX_LINE).collect())
        .collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_lines() {
        let text = (0..100)
            .map(|line| format!("line {line}"))
            .collect::<Vec<_>>()
            .join("\n");
        let tail = last_lines(&text);
        assert!(tail.starts_with("line 85\n"));
        assert!(tail.ends_with("line 99"));
    }

    #[test]
    fn a_missing_file_is_named() {
        assert!(tail_of(Path::new("/nonexistent/x.log")).contains("/nonexistent/x.log"));
    }
}
