//! Lines of any length in bounded memory, and the fields of a line of separated values.

use std::io::{self, BufRead, BufReader, Read};

use super::LONGEST_LINE;

/// What comes next.
pub(super) enum Next<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// A line of this number of bytes, which was skipped.
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

/// The fields of a line of separated values (RFC 4180): a field in double quotes may hold the separator, and doubled
/// quotes. No field spans lines here, so that a quote that is never closed takes the rest of its line.
#[derive(Debug)]
pub(super) struct Fields {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    number: usize,
}

impl Fields {
    pub(super) fn separated_by(separator: u8) -> Self {
        let terminator = csv_core::Terminator::Any(b'\n');
        let reader = csv_core::ReaderBuilder::new().delimiter(separator).terminator(terminator).build();
        Self { reader, text: Vec::new(), ends: Vec::new(), number: 0 }
    }

    /// Takes the fields of `line`.
    pub(super) fn split(&mut self, line: &str) {
        // Neither the text nor the number of fields can be larger.
        self.text.resize(self.text.len().max(line.len()), 0);
        self.ends.resize(self.ends.len().max(line.len() + 1), 0);
        self.reader.reset();
        let (_, _, written, ended) = self.reader.read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let (text, ends) = (self.text.get_mut(written..), self.ends.get_mut(ended..));
        let (_, _, _, last) = self.reader.read_record(&[], text.unwrap_or_default(), ends.unwrap_or_default());
        self.number = ended + last;
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.number
    }

    /// The field at `place`, from zero.
    pub(super) fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(..self.number)?.get(place)?;
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        // Separators and quotes are ASCII, between which text stays text.
        std::str::from_utf8(self.text.get(start..end)?).ok()
    }

    /// All fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.number).filter_map(|place| self.get(place))
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

    #[test]
    fn quotes_protect_separators() {
        let mut fields = Fields::separated_by(b',');
        for (line, expected) in [
            ("a,b,", vec!["a", "b", ""]),
            ("\"a,\"\"b\",c", vec!["a,\"b", "c"]),
            ("\"open,c", vec!["open,c"]),
            ("a\"b,\r,é", vec!["a\"b", "\r", "é"]),
            (",", vec!["", ""]),
        ] {
            fields.split(line);
            assert_eq!(fields.iter().collect::<Vec<_>>(), expected, "{line}");
            assert_eq!(fields.len(), expected.len());
        }
    }
}
