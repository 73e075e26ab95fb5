//! Files through three stages at once: some blocks are read while those before them are parsed, on all threads, and the
//! samples of those before these are taken in the order of the files.
//!
//! Nothing depends on which thread does what, so that everything comes out as it would on one.

use std::io::{self, Read};

use rayon::prelude::*;

use super::blocks::{Block, Blocks};
use super::carat::{Carat, Parsed, Parser};
use super::context::ImportContext;
use super::packing::{self, Unpacked};
use super::{ImportError, Result, is_damage};

/// Blocks that are read at a time: some 8 MB of text, of which three lots are in memory.
const AT_ONCE: usize = 32;

/// What is read.
enum Piece {
    /// A file of this name begins.
    File(String),
    Lines(Vec<u8>),
    /// The same once they are parsed.
    Parsed(Parsed),
    /// A line of so many bytes, which was skipped.
    TooLong(usize),
    /// A packed file breaks off; so many bytes of its last line were read.
    Damaged(io::Error, usize),
    /// The import is over.
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
        // Lines are parsed before.
        Piece::Lines(_) => Ok(()),
    }
}

/// The pieces of a file.
struct Pieces<'r> {
    name: String,
    /// What comes before the text.
    first: Option<Piece>,
    text: Option<Blocks<Box<dyn Read + Send + 'r>>>,
    is_packed: bool,
}

impl<'r> Pieces<'r> {
    fn new<R: Read + Send + 'r>(name: String, file: io::Result<R>, kind: super::Kind) -> Self {
        let ends =
            |error| Self { name: String::new(), first: Some(Piece::Failed(error)), text: None, is_packed: false };
        match file.and_then(|file| packing::unpack(file, kind)) {
            Ok(Ok(Unpacked::Text { reader, packed })) => {
                let first = Some(Piece::File(name.clone()));
                Self { name, first, text: Some(Blocks::new(reader)), is_packed: packed }
            }
            // Only LSApp's are asked for tars.
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
                // A packed file that breaks off says so itself; anything else is the file system's.
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
