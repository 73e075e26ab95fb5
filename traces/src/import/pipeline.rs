//! Files through three concurrent stages: some blocks are read while those before them are parsed, on all threads, and
//! the samples of the blocks before those are taken in the order of the files.
//!
//! Nothing depends on the choice of threads, so that the result is the same as on one thread.
//!
//! Blocks consist of whole lines of a text, some hundred kilobytes at a time, so that memory is bounded and several
//! threads can work in parallel.
//!
//! A file is packed in nothing, gzip, or a tar in a gzip; other archives are refused with advice.

use std::io::{self, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use haversack_devices::ensure;
use rayon::prelude::*;
use tar::{Archive, Entry, Header};

use super::{Carat, ImportContext, ImportError, Kind, LONGEST_LINE, Parsed, Parser, Result, is_damage};
use crate::words::WORDS;

/// Blocks that are read at a time: some 8 MB of text, of which three batches are in memory.
const AT_ONCE: usize = 32;

/// A piece of the input.
enum Piece {
    /// A file of this name begins.
    File(String),
    Lines(Vec<u8>),
    /// The same once they are parsed.
    Parsed(Parsed),
    /// A line of this number of bytes, which was skipped.
    TooLong(usize),
    /// A packed file breaks off after this number of bytes of its last line.
    Damaged(io::Error, usize),
    /// The import ends with an error.
    Failed(ImportError),
}

/// Reads all `files`.
pub(super) fn run<R: Read + Send>(
    files: impl Iterator<Item = (String, io::Result<R>)> + Send,
    parser: Parser,
    carat: &mut Carat,
    context: &mut ImportContext<'_>,
) -> Result<()> {
    let kind = context.options.kind;
    let mut pieces = files.flat_map(|(name, file)| Pieces::new(name, file, kind));
    let mut steps: Vec<Piece> = Vec::new();
    let mut read: Vec<Piece> = pieces.by_ref().take(AT_ONCE).collect();
    while !(read.is_empty() && steps.is_empty()) {
        let parse = |piece| match piece {
            Piece::Lines(lines) => Piece::Parsed(parser.parse(lines)),
            piece => piece,
        };
        let (taken, (next, parsed)) = rayon::join(
            || steps.into_iter().try_for_each(|piece| take(piece, carat, context)),
            || {
                rayon::join(
                    || pieces.by_ref().take(AT_ONCE).collect(),
                    || read.into_par_iter().with_max_len(1).map(parse).collect(),
                )
            },
        );
        taken?;
        (read, steps) = (next, parsed);
    }
    Ok(())
}

fn take(piece: Piece, carat: &mut Carat, context: &mut ImportContext<'_>) -> Result<()> {
    match piece {
        Piece::Parsed(parsed) => carat.take(&parsed, context),
        Piece::File(name) => {
            context.open(&name);
            Ok(())
        }
        Piece::TooLong(length) => {
            context.next_line(length);
            context.too_long(length)
        }
        Piece::Damaged(error, rest) => context.damaged(rest, &error),
        Piece::Failed(error) => Err(error),
        // Lines are parsed before this stage.
        Piece::Lines(_) => Ok(()),
    }
}

/// The pieces of a file.
struct Pieces<'r> {
    name: String,
    /// The piece before the text.
    first: Option<Piece>,
    text: Option<Blocks<Box<dyn Read + Send + 'r>>>,
    is_packed: bool,
}

impl<'r> Pieces<'r> {
    fn new<R: Read + Send + 'r>(name: String, file: io::Result<R>, kind: super::Kind) -> Self {
        let ends =
            |error| Self { name: String::new(), first: Some(Piece::Failed(error)), text: None, is_packed: false };
        match file.and_then(|file| unpack(file, kind)) {
            Ok(Ok(Unpacked::Text { reader, packed })) => {
                let first = Some(Piece::File(name.clone()));
                Self { name, first, text: Some(Blocks::new(reader)), is_packed: packed }
            }
            // Tars are read only for LSApp.
            Ok(Ok(Unpacked::Tar(_))) => Self { name, first: None, text: None, is_packed: true },
            Ok(Err((what, advice))) => ends(ImportError::Archive { file: name, what, advice }),
            Err(source) => ends(ImportError::Read { file: name, source }),
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        match self.text.as_mut()?.next() {
            Block::Lines(lines) => Some(Piece::Lines(lines)),
            Block::TooLong(length) => Some(Piece::TooLong(length)),
            Block::Failed(error, rest) => {
                self.text = None;
                // A packed file that breaks off has a specific error; other errors come from the file system.
                Some(if self.is_packed && is_damage(&error) {
                    Piece::Damaged(error, rest)
                } else {
                    Piece::Failed(ImportError::Read { file: self.name.clone(), source: error })
                })
            }
            Block::End => None,
        }
    }
}

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;

/// The next part of a text.
#[derive(Debug)]
pub(super) enum Block {
    /// Whole lines; the last line of the text may lack its end.
    Lines(Vec<u8>),
    /// A line of this number of bytes, which was skipped.
    TooLong(usize),
    /// The text cannot be read any further, after this number of bytes of its last line.
    Failed(io::Error, usize),
    /// The end of the text.
    End,
}

/// The blocks of a reader.
pub(super) struct Blocks<R> {
    reader: R,
    /// The beginning of the next line.
    rest: Vec<u8>,
    /// The length of its part that is known to contain no end of a line.
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

    /// Appends the next bytes of the text to `bytes`.
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

    /// Skips to the end of a line of which `length` bytes are known.
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

/// Bytes of a tar's header.
const TAR_BLOCK: usize = 512;

/// A file without its packing.
pub(super) enum Unpacked<'r> {
    /// A text.
    Text {
        /// Its bytes.
        reader: Box<dyn Read + Send + 'r>,
        /// Whether there was a packing, which can break off.
        packed: bool,
    },
    /// A tar, of which LSApp needs the text files.
    Tar(Archive<Box<dyn Read + Send + 'r>>),
}

/// An archive and how to unpack it.
type Refusal = (&'static str, &'static str);

/// The largest factor by which unpacking may enlarge a file beyond [`SMALL`]; text is enlarged about twentyfold.
const GROWTH: u64 = 500;
const SMALL: u64 = 1 << 24;

/// A reader that counts its bytes.
struct Counted<R> {
    reader: R,
    bytes: u64,
}

const fn counted<R>(reader: R) -> Counted<R> {
    Counted { reader, bytes: 0 }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The content of a gzip, which ends with an error if it grows as no recording does.
struct Unzipped<R>(Counted<MultiGzDecoder<Counted<R>>>);

impl<R: Read> Read for Unzipped<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        let most = SMALL.max(GROWTH * self.0.reader.get_ref().bytes);
        let why = || io::Error::other(format!("unpacked it is more than {GROWTH} times as large, as no recording is"));
        if self.0.bytes > most { Err(why()) } else { Ok(read) }
    }
}

/// Unpacks `reader` by the format that its first bytes show.
pub(super) fn unpack<'r>(reader: impl Read + Send + 'r, kind: Kind) -> io::Result<Result<Unpacked<'r>, Refusal>> {
    let (head, failed, reader) = peek(reader, 4);
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some((_, what, advice)) = WORDS.archives.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Ok(Err((what, advice)));
    }
    let is_gzip = head.starts_with(b"\x1f\x8b");
    let whole = Cursor::new(head).chain(reader);
    let unzipped: Box<dyn Read + Send + 'r> =
        if is_gzip { Box::new(Unzipped(counted(MultiGzDecoder::new(counted(whole))))) } else { Box::new(whole) };
    if kind != Kind::Lsapp {
        return Ok(Ok(Unpacked::Text { reader: unzipped, packed: is_gzip }));
    }
    let (head, failed, rest) = peek(unzipped, TAR_BLOCK);
    let is_tar = is_header(&head);
    // A failure is returned where it occurred: after the bytes that were read before it.
    let reader: Box<dyn Read + Send + 'r> = Box::new(Cursor::new(head).chain(Failing(failed)).chain(rest));
    Ok(Ok(if is_tar { Unpacked::Tar(Archive::new(reader)) } else { Unpacked::Text { reader, packed: is_gzip } }))
}

/// Whether `block` is the header of a tar: its checksum is right, which text's is not.
fn is_header(block: &[u8]) -> bool {
    if block.len() != TAR_BLOCK {
        return false;
    }
    let header = Header::from_byte_slice(block);
    let mut summed = header.clone();
    summed.set_cksum();
    header.cksum().is_ok_and(|stated| summed.cksum().is_ok_and(|sum| sum == stated))
}

/// Whether the entry of a tar is a text; names that begin with `._` are a Mac's notes on other files.
pub(super) fn is_text<R: Read>(entry: &Entry<'_, R>) -> bool {
    let path = entry.path_bytes();
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_named = (name.ends_with(b".tsv") || name.ends_with(b".txt")) && !name.starts_with(b"._");
    is_named && entry.header().entry_type().is_file()
}

/// An entry that fails where the archive ends within it.
pub(super) struct Whole<R> {
    /// The entry's bytes.
    pub(super) reader: R,
    /// The number of bytes still to come.
    pub(super) left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        ensure!(read != 0 || self.left == 0 || buffer.is_empty(), ErrorKind::UnexpectedEof.into());
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// The first `length` bytes, or all if there are fewer, and the failure that stopped them.
fn peek<R: Read>(mut reader: R, length: usize) -> (Vec<u8>, Option<io::Error>, R) {
    let mut head = Vec::with_capacity(length);
    let failed = (&mut reader).take(length as u64).read_to_end(&mut head).err();
    (head, failed, reader)
}

/// Fails once, if there is a failure, and is empty otherwise.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
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

    fn append(tar: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8], kind: tar::EntryType) {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content).unwrap();
    }

    /// The texts of a tar up to its end or its damage, and whether it was damaged.
    fn texts(tar: &[u8]) -> (Vec<u8>, bool) {
        let Ok(Unpacked::Tar(mut archive)) = unpack(tar, Kind::Lsapp).unwrap() else { panic!("no tar") };
        let mut text = Vec::new();
        for entry in archive.entries().unwrap() {
            let Ok(entry) = entry else { return (text, true) };
            let left = entry.size();
            if is_text(&entry) && (Whole { reader: entry, left }).read_to_end(&mut text).is_err() {
                return (text, true);
            }
        }
        (text, false)
    }

    #[test]
    fn only_text_files_come_out() {
        let long = vec![b'x'; 600];
        let mut tar = tar::Builder::new(Vec::new());
        append(&mut tar, "._lsapp.tsv", b"mac", tar::EntryType::Regular);
        append(&mut tar, "data/", b"", tar::EntryType::Directory);
        append(&mut tar, "data/lsapp.tsv", &long, tar::EntryType::Regular);
        append(&mut tar, "data/readme.md", b"no", tar::EntryType::Regular);
        append(&mut tar, "more.tsv", b"yes", tar::EntryType::Regular);
        let tar = tar.into_inner().unwrap();
        assert!(is_header(&tar[..TAR_BLOCK]) && !is_header(&[b'a'; TAR_BLOCK]) && !is_header(b"a"));
        assert_eq!(texts(&tar), ([&long[..], b"yes"].concat(), false));
        // Blocks before the long content: 2 of the Mac's note, 1 of the folder, 1 header; 100 bytes are left of it.
        let cut = 4 * TAR_BLOCK + 100;
        assert_eq!(texts(&tar[..cut]), (vec![b'x'; 100], true));
        // A damaged header: of the third file, behind the 600 bytes in two blocks.
        let mut damaged = tar;
        damaged[6 * TAR_BLOCK] ^= 1;
        assert_eq!(texts(&damaged), (long, true));
    }
}
