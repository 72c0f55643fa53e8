//! Lines out of a byte stream, bounded in length. Pure.

use bytes::{Bytes, BytesMut};

/// A line grew over the bound without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Bytes that wait for the end of their line.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no line end.
    scanned: usize,
    longest: usize,
}

impl Lines {
    pub(super) fn new(longest: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            longest,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line that is not blank, without its end.
    pub(super) fn next_line(&mut self) -> Result<Option<Bytes>, TooLong> {
        loop {
            let Some(end) = self.buffer[self.scanned..]
                .iter()
                .position(|byte| *byte == b'\n')
            else {
                self.scanned = self.buffer.len();
                return if self.scanned > self.longest {
                    Err(TooLong)
                } else {
                    Ok(None)
                };
            };
            let mut line = self.buffer.split_to(self.scanned + end + 1);
            self.scanned = 0;
            line.truncate(line.len() - 1);
            if line.len() > self.longest {
                return Err(TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line.freeze()));
            }
        }
    }

    /// Whether a line was begun and never ended.
    pub(super) fn has_rest(&self) -> bool {
        !self.buffer.trim_ascii().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<Bytes> {
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_were_cut() {
        let text = b"{\"a\":1}\n\r\n{\"b\":2}\n{\"c\":3}\nrest";
        for size in 1..text.len() {
            let mut lines = Lines::new(100);
            let mut seen = Vec::new();
            for chunk in text.chunks(size) {
                lines.push(chunk);
                seen.extend(all(&mut lines));
            }
            assert_eq!(seen, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
            assert!(lines.has_rest());
        }
    }

    #[test]
    fn a_line_without_an_end_stops_growing_at_the_bound() {
        let mut lines = Lines::new(10);
        lines.push(b"0123456789");
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"0");
        assert_eq!(lines.next_line(), Err(TooLong));
    }

    #[test]
    fn a_finished_line_leaves_no_rest() {
        let mut lines = Lines::new(10);
        lines.push(b"{}\n \n");
        assert_eq!(all(&mut lines), ["{}"]);
        assert!(!lines.has_rest());
    }
}
