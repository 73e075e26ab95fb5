//! What a file is packed in: nothing, gzip, or a tar in a gzip; archives that are not read are refused with advice.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::Kind;
use super::tape::{self, Tape};

/// A file without its packing.
pub(super) struct Unpacked<'r> {
    /// The text.
    pub(super) reader: Box<dyn Read + 'r>,
    /// Whether there was a packing, which can break off.
    pub(super) packed: bool,
}

/// An archive and how to unpack it.
type Refusal = (&'static str, &'static str);

/// Archives by their first bytes.
const ARCHIVES: [(&[u8], Refusal); 4] = [
    (
        b"PK\x03\x04",
        (
            "zip archive",
            "unpack it with `7z x FILE` and import what comes out; the password of the Carat data is on its \
             data-sharing page",
        ),
    ),
    (b"Rar!", ("RAR archive", "unpack it with `7z x FILE` or `unrar x FILE` and import what comes out")),
    (b"7z\xbc\xaf", ("7z archive", "unpack it with `7z x FILE` and import what comes out")),
    (b"PAR1", ("Parquet file", "it has been imported already; `haversack trace stats` reads it")),
];

/// Takes `reader` out of its packing, which its first bytes tell.
pub(super) fn unpack<'r>(reader: impl Read + 'r, kind: Kind) -> io::Result<Result<Unpacked<'r>, Refusal>> {
    let (head, failed, reader) = peek(reader, 4);
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some((_, refusal)) = ARCHIVES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Ok(Err(*refusal));
    }
    let is_gzip = head.starts_with(b"\x1f\x8b");
    let whole = Cursor::new(head).chain(reader);
    let unzipped: Box<dyn Read + 'r> = if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    if kind != Kind::Lsapp {
        return Ok(Ok(Unpacked { reader: unzipped, packed: is_gzip }));
    }
    let (head, failed, rest) = peek(unzipped, tape::BLOCK);
    let is_tape = tape::is_header(&head);
    // A failure comes back where it was met: behind what was read before it.
    let whole = Cursor::new(head).chain(Failing(failed)).chain(rest);
    let reader: Box<dyn Read + 'r> = if is_tape { Box::new(Tape::new(whole)) } else { Box::new(whole) };
    Ok(Ok(Unpacked { reader, packed: is_gzip || is_tape }))
}

/// The first `length` bytes, or what there is, and the failure that stopped them.
fn peek<R: Read>(mut reader: R, length: usize) -> (Vec<u8>, Option<io::Error>, R) {
    let mut head = Vec::with_capacity(length);
    let failed = (&mut reader).take(length as u64).read_to_end(&mut head).err();
    (head, failed, reader)
}

/// Fails once, if it has to, and is empty.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
