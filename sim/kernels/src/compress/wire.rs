//! The bytes of a compressed tensor.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `hvfm` |
//! | 1 | version |
//! | 3 · 4 | channels, height, width |
//! | 6 · 8 | lengths of the sections that follow |
//! | | frames of symbols |
//! | | a record for each channel: how it is stored |
//! | | words and ranges of quantised channels |
//! | | blocks of salient channels: which are sparse, and these in compressed sparse rows |
//! | | elements that are kept exactly: of a channel stored whole all, otherwise places and then elements |
//! | | extra bits of large misses |
//!
//! Numbers are little-endian. A tensor without elements has empty sections.

use super::{CodecError, Shape};
use crate::Bits;

const MAGIC: [u8; 4] = *b"hvfm";
/// The version that is written and read.
const VERSION: u8 = 1;
/// Sections.
const SECTIONS: usize = 6;

/// The sections of a compressed tensor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sections<T> {
    /// Of symbols; of a tensor that is being written, they are in its bytes already.
    pub(super) frames: T,
    pub(super) records: T,
    pub(super) quantised: T,
    pub(super) blocks: T,
    pub(super) exact: T,
    pub(super) extras: T,
}

/// Bytes of the head.
const HEAD: usize = MAGIC.len() + 1 + 3 * 4 + 8 * SECTIONS;

/// Makes room for the head of a tensor, after which its frames follow.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEAD, 0);
}

impl Sections<Vec<u8>> {
    /// Completes a tensor whose frames are in `out`.
    pub(super) fn finish(&self, shape: Shape, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let Self { frames: _, records, quantised, blocks, exact, extras } = self;
        let sections = [records, quantised, blocks, exact, extras];
        let mut head = Vec::with_capacity(HEAD);
        head.extend(MAGIC);
        head.push(VERSION);
        for dimension in [shape.channels, shape.height, shape.width] {
            let dimension = u32::try_from(dimension);
            let found = shape.elements().unwrap_or(usize::MAX);
            head.extend(dimension.map_err(|_| CodecError::Shape { found, shape })?.to_le_bytes());
        }
        let frames = out.len() - HEAD;
        let lengths = std::iter::once(frames).chain(sections.iter().map(|section| section.len()));
        head.extend(lengths.flat_map(|length| (length as u64).to_le_bytes()));
        out[..HEAD].copy_from_slice(&head);
        sections.iter().for_each(|section| out.extend_from_slice(section));
        Ok(())
    }
}

/// Reads the head of a compressed tensor, and finds its sections.
pub(super) fn read(bytes: &[u8]) -> Result<(Shape, Sections<Reader<'_>>), CodecError> {
    let mut reader = Reader { what: "the head", bytes };
    let version: [u8; 5] = reader.array()?;
    if version[..4] != MAGIC || version[4] != VERSION {
        let found = version.escape_ascii();
        return Err(CodecError::Damaged(format!("not a compressed tensor of version {VERSION}: {found}")));
    }
    let mut dimension = || reader.u32().map(|dimension| dimension as usize);
    let shape = Shape { channels: dimension()?, height: dimension()?, width: dimension()? };
    let mut lengths = [0; SECTIONS];
    for length in &mut lengths {
        *length = u64::from_le_bytes(reader.array()?);
    }
    let mut section = |place: usize, what| {
        let length = usize::try_from(lengths[place]).unwrap_or(usize::MAX);
        Ok::<_, CodecError>(Reader { what, bytes: reader.take(length)? })
    };
    let sections = Sections {
        frames: section(0, "the section of frames")?,
        records: section(1, "the section of records")?,
        quantised: section(2, "the section of quantised channels")?,
        blocks: section(3, "the section of blocks")?,
        exact: section(4, "the section of exact elements")?,
        extras: section(5, "the section of extra bits")?,
    };
    reader.what = "the tensor";
    reader.finish()?;
    Ok((shape, sections))
}

/// How a channel is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Record {
    /// All elements are the same.
    Constant { value: f32 },
    /// Exactly.
    Whole,
    /// As codes, in groups of 256.
    Quantised { bits: Bits },
    /// As the misses of prediction, in steps; except `exact` elements, and sparse blocks, whose edge is `edge`.
    Predicted { step: f32, exact: u32, edge: Option<u8> },
}

impl Record {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Constant { value } => {
                out.push(0);
                out.extend(value.to_le_bytes());
            }
            Self::Whole => out.push(1),
            Self::Quantised { bits } => out.extend([2, bits.get() as u8]),
            Self::Predicted { step, exact, edge } => {
                out.push(if edge.is_some() { 4 } else { 3 });
                out.extend(step.to_le_bytes());
                out.extend(exact.to_le_bytes());
                out.extend(edge);
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, CodecError> {
        match reader.u8()? {
            0 => Ok(Self::Constant { value: reader.f32()? }),
            1 => Ok(Self::Whole),
            2 => Ok(Self::Quantised { bits: Bits::new(reader.u8()?)? }),
            kind @ 3..=4 => {
                let (step, exact) = (reader.f32()?, reader.u32()?);
                Ok(Self::Predicted { step, exact, edge: if kind == 4 { Some(reader.u8()?) } else { None } })
            }
            _ => Err(reader.damaged("a channel is stored in an unknown way")),
        }
    }
}

/// Takes bytes from the front of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    what: &'static str,
    /// The bytes that are left.
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], CodecError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            let (what, found) = (self.what, self.bytes.len());
            return Err(CodecError::Damaged(format!("{what} has {found} bytes; expected {length}")));
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        self.take(N).map(|taken| taken.first_chunk().copied().unwrap_or([0; N]))
    }

    pub(super) fn u8(&mut self) -> Result<u8, CodecError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, CodecError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Result<f32, CodecError> {
        self.array().map(f32::from_le_bytes)
    }

    /// The next `count` words, one after the other.
    pub(super) fn words(&mut self, count: usize) -> Result<impl ExactSizeIterator<Item = u32> + use<'a>, CodecError> {
        let bytes = self.take(count.saturating_mul(4))?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)))
    }

    /// The error of a damaged section.
    pub(super) fn damaged(&self, reason: &str) -> CodecError {
        CodecError::damaged(self.what, reason)
    }

    /// Fails unless everything has been read.
    pub(super) fn finish(&self) -> Result<(), CodecError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.damaged("it continues after its end")) }
    }
}
