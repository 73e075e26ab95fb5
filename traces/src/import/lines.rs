//! Lines of any length in bounded memory.

use std::io::{self, BufRead, BufReader, Read};

use super::LONGEST_LINE;

/// What comes next.
pub(super) enum Next<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// A line of so many bytes, which was skipped.
    TooLong(usize),
    /// Nothing.
    End,
}

/// The lines of a reader.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    first: bool,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 17, reader), line: Vec::new(), first: true }
    }

    /// The next line.
    pub(super) fn next(&mut self) -> io::Result<Next<'_>> {
        self.line.clear();
        let mut within = (&mut self.reader).take(LONGEST_LINE as u64 + 1);
        if within.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(Next::End);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > LONGEST_LINE {
            let length = self.line.len() + self.skip_line()?;
            self.line = Vec::new();
            return Ok(Next::TooLong(length));
        }
        let line = if std::mem::take(&mut self.first) {
            self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line)
        } else {
            &self.line
        };
        Ok(Next::Line(line))
    }

    /// What had been read of a line when the reader failed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.line
    }

    fn skip_line(&mut self) -> io::Result<usize> {
        let mut skipped = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            let (used, done) = match buffer.iter().position(|&byte| byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(used);
            skipped += used - usize::from(done && used > 0);
            if done {
                return Ok(skipped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_newlines_and_the_last_may_do_without() {
        let mut lines = Lines::new(&b"\xef\xbb\xbfa\n\nb"[..]);
        for expected in [&b"a"[..], b"", b"b"] {
            assert!(matches!(lines.next().unwrap(), Next::Line(line) if line == expected));
        }
        assert!(matches!(lines.next().unwrap(), Next::End));
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_read() {
        let text = [vec![b'x'; LONGEST_LINE + 7], b"\nshort\n".to_vec(), vec![b'y'; LONGEST_LINE]].concat();
        let mut lines = Lines::new(&text[..]);
        assert!(matches!(lines.next().unwrap(), Next::TooLong(length) if length == LONGEST_LINE + 7));
        assert!(matches!(lines.next().unwrap(), Next::Line(b"short")));
        // A line of just the limit is still a line.
        assert!(matches!(lines.next().unwrap(), Next::Line(line) if line.len() == LONGEST_LINE));
        assert!(matches!(lines.next().unwrap(), Next::End));
    }
}
