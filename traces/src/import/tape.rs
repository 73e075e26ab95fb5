//! A tar, as far as LSApp needs it: the text files of the archive, one behind the other.
//!
//! Format: POSIX.1-1988 ustar and its predecessor; extended headers are skipped.

use std::io::{self, ErrorKind, Read};

/// Headers and contents are padded to this.
pub(super) const BLOCK: usize = 512;

/// Whether `block` is the header of a tar: its checksum is right, which text's is not.
pub(super) fn is_header(block: &[u8]) -> bool {
    let Some(stated) = block.get(148..156).filter(|_| block.len() == BLOCK).and_then(octal) else { return false };
    // The checksum counts itself as blanks.
    let sum: u64 = (0..).zip(block).map(|(i, &byte)| if (148..156).contains(&i) { 32 } else { u64::from(byte) }).sum();
    sum == stated
}

/// An octal number between blanks and nulls.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// The contents of the `.tsv` and `.txt` files of a tar.
pub(super) struct Tape<R> {
    reader: R,
    /// Bytes of the present file that are still to come.
    left: u64,
    /// Bytes behind it, up to the next block.
    padding: u64,
    over: bool,
}

impl<R: Read> Tape<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, left: 0, padding: 0, over: false }
    }

    /// Goes to the next text file; the tape is over where there is none.
    fn advance(&mut self) -> io::Result<()> {
        let damaged = |why| io::Error::new(ErrorKind::InvalidData, why);
        loop {
            skip(&mut self.reader, self.padding)?;
            let mut header = [0; BLOCK];
            self.reader.read_exact(&mut header)?;
            if header.iter().all(|&byte| byte == 0) {
                self.over = true;
                return Ok(());
            }
            if !is_header(&header) {
                return Err(damaged("a header of the tar is damaged"));
            }
            let size = header.get(124..136).and_then(octal).ok_or_else(|| damaged("a size in the tar is damaged"))?;
            let padding = size.next_multiple_of(BLOCK as u64) - size;
            if is_text(&header) {
                (self.left, self.padding) = (size, padding);
                return Ok(());
            }
            skip(&mut self.reader, size)?;
            self.padding = padding;
        }
    }
}

/// Whether the header is of a file with text; names that begin with `._` are a Mac's notes on other files.
fn is_text(header: &[u8; BLOCK]) -> bool {
    let is_file = matches!(header.get(156), Some(b'0' | 0));
    let name = header.get(..100).map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default());
    let name = name.and_then(|name| name.rsplit(|&byte| byte == b'/').next()).unwrap_or_default();
    is_file && (name.ends_with(b".tsv") || name.ends_with(b".txt")) && !name.starts_with(b"._")
}

fn skip(reader: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut reader.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

impl<R: Read> Read for Tape<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && !self.over {
            self.advance()?;
        }
        if self.over || buffer.is_empty() {
            return Ok(0);
        }
        let read = (&mut self.reader).take(self.left).read(buffer)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with a right checksum.
    fn header(name: &str, size: usize, kind: u8) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[156] = kind;
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    }

    fn entry(name: &str, content: &[u8], kind: u8) -> Vec<u8> {
        let mut content = content.to_vec();
        let block = header(name, content.len(), kind);
        content.resize(content.len().next_multiple_of(BLOCK), 0);
        [block, content].concat()
    }

    #[test]
    fn only_text_files_come_out() {
        let long = vec![b'x'; 600];
        let tape = [
            entry("._lsapp.tsv", b"mac", b'0'),
            entry("data/", b"", b'5'),
            entry("data/lsapp.tsv", &long, b'0'),
            entry("data/readme.md", b"no", b'0'),
            entry("more.tsv", b"yes", b'0'),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        assert!(is_header(&tape[..BLOCK]));
        assert!(!is_header(&[b'a'; BLOCK]));
        let mut text = Vec::new();
        Tape::new(&tape[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text, [&long[..], b"yes"].concat());
        // Blocks before the long content: 2 of the Mac's note, 1 of the folder, 1 header; 100 bytes are left of it.
        let mut text = Vec::new();
        let cut = 4 * BLOCK + 100;
        assert!(Tape::new(&tape[..cut]).read_to_end(&mut text).is_err());
        assert_eq!(text, vec![b'x'; 100]);
    }
}
