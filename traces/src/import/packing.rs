//! What a file is packed in: nothing, gzip, or a tar in a gzip; archives that are not read are refused with advice.

use std::io::{self, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, Header};

use super::Kind;

/// Bytes of a tar's header.
const BLOCK: usize = 512;

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
pub(super) fn unpack<'r>(reader: impl Read + Send + 'r, kind: Kind) -> io::Result<Result<Unpacked<'r>, Refusal>> {
    let (head, failed, reader) = peek(reader, 4);
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some((_, refusal)) = ARCHIVES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Ok(Err(*refusal));
    }
    let is_gzip = head.starts_with(b"\x1f\x8b");
    let whole = Cursor::new(head).chain(reader);
    let unzipped: Box<dyn Read + Send + 'r> =
        if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    if kind != Kind::Lsapp {
        return Ok(Ok(Unpacked::Text { reader: unzipped, packed: is_gzip }));
    }
    let (head, failed, rest) = peek(unzipped, BLOCK);
    let is_tar = is_header(&head);
    // A failure comes back where it was met: behind what was read before it.
    let reader: Box<dyn Read + Send + 'r> = Box::new(Cursor::new(head).chain(Failing(failed)).chain(rest));
    Ok(Ok(if is_tar { Unpacked::Tar(Archive::new(reader)) } else { Unpacked::Text { reader, packed: is_gzip } }))
}

/// Whether `block` is the header of a tar: its checksum is right, which text's is not.
fn is_header(block: &[u8]) -> bool {
    if block.len() != BLOCK {
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
    /// How many of them are still to come.
    pub(super) left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(is_header(&tar[..BLOCK]) && !is_header(&[b'a'; BLOCK]) && !is_header(b"a"));
        assert_eq!(texts(&tar), ([&long[..], b"yes"].concat(), false));
        // Blocks before the long content: 2 of the Mac's note, 1 of the folder, 1 header; 100 bytes are left of it.
        let cut = 4 * BLOCK + 100;
        assert_eq!(texts(&tar[..cut]), (vec![b'x'; 100], true));
        // A damaged header: of the third file, behind the 600 bytes in two blocks.
        let mut damaged = tar;
        damaged[6 * BLOCK] ^= 1;
        assert_eq!(texts(&damaged), (long, true));
    }
}
