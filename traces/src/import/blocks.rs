//! Whole lines of a text in bounded memory, some hundred kilobytes at a time, so that several threads can have some each.

use std::io::{self, Read};

use super::LONGEST_LINE;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;

/// What comes next of a text.
#[derive(Debug)]
pub(super) enum Block {
    /// Whole lines; the last line of the text may lack its end.
    Lines(Vec<u8>),
    /// A line of this number of bytes, which was skipped.
    TooLong(usize),
    /// The text cannot be read on; of its last line so many bytes had been.
    Failed(io::Error, usize),
    /// Nothing.
    End,
}

/// The blocks of a reader.
pub(super) struct Blocks<R> {
    reader: R,
    /// The beginning of the next line.
    rest: Vec<u8>,
    /// How much of it is known to hold no end of a line.
    searched: usize,
    has_begun: bool,
    is_over: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, rest: Vec::new(), searched: 0, has_begun: false, is_over: false, failure: None }
    }

    /// The next block.
    pub(super) fn next(&mut self) -> Block {
        loop {
            let mut bytes = std::mem::take(&mut self.rest);
            let searched = std::mem::take(&mut self.searched);
            self.fill(&mut bytes);
            if let Some(end) = bytes.iter().skip(searched).rposition(|&byte| byte == b'\n') {
                self.rest = bytes.split_off(searched + end + 1);
                self.searched = self.rest.len();
                return Block::Lines(bytes);
            }
            if self.is_over {
                return match self.failure.take() {
                    Some(error) => Block::Failed(error, bytes.len()),
                    None if bytes.is_empty() => Block::End,
                    None => Block::Lines(bytes),
                };
            }
            if bytes.len() > LONGEST_LINE {
                return self.skip_line(bytes.len());
            }
            self.searched = bytes.len();
            self.rest = bytes;
        }
    }

    /// Appends what comes next to `bytes`.
    fn fill(&mut self, bytes: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        bytes.reserve(BLOCK);
        match (&mut self.reader).take(BLOCK as u64).read_to_end(bytes) {
            Ok(read) => self.is_over = read < BLOCK,
            Err(error) => (self.is_over, self.failure) = (true, Some(error)),
        }
        if !std::mem::replace(&mut self.has_begun, true) && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
    }

    /// Goes to the end of a line of which `length` bytes are known.
    fn skip_line(&mut self, mut length: usize) -> Block {
        loop {
            let mut bytes = Vec::new();
            self.fill(&mut bytes);
            if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
                self.rest = bytes.split_off(end + 1);
                return Block::TooLong(length + end);
            }
            length += bytes.len();
            if self.is_over {
                return self.failure.take().map_or(Block::TooLong(length), |error| Block::Failed(error, length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_their_lines_and_long_lines_are_skipped() {
        // Lines of 7 bytes do not divide a block; the long line begins within one and ends within another.
        let short = b"abcdef\n".repeat(BLOCK / 4);
        let long = [&vec![b'x'; LONGEST_LINE + BLOCK + 5][..], b"\n"].concat();
        let text = [b"\xef\xbb\xbf", &short[..], &long, &short, b"end"].concat();
        let mut blocks = Blocks::new(&text[..]);
        let (mut whole, mut skipped) = (Vec::new(), Vec::new());
        loop {
            match blocks.next() {
                Block::Lines(lines) => {
                    assert!(lines.ends_with(b"\n") || lines.ends_with(b"end"));
                    whole.extend(lines);
                }
                Block::TooLong(length) => skipped.push((whole.len(), length)),
                Block::Failed(error, _) => panic!("{error}"),
                Block::End => break,
            }
        }
        assert_eq!(skipped, [(short.len(), LONGEST_LINE + BLOCK + 5)]);
        assert_eq!(whole, [&short[..], &short, b"end"].concat());
    }
}
