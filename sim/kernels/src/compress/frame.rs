//! Frames of symbols: each frame has its own Huffman code and leaves out blocks that are all zero.

use super::streams::{most_bytes, quarter};
use super::{Code, CodecError, Emit, Read, Reader, STREAMS, huffman};
use crate::Isa;
use crate::simd::{Loops, compiled};

/// Symbols of a frame, except the last: they and their codes fit in a second-level cache.
pub(super) const FRAME: usize = 1 << 17;
/// Symbols that one bit marks as all zero.
const BLOCK: usize = 8;

/// The kinds of a frame.
const ALL_ZERO: u8 = 0;
/// Outside the zero blocks, all symbols are the same.
const ONE_SYMBOL: u8 = 1;
const CODED: u8 = 2;

/// Frames that are being written.
#[derive(Debug)]
pub(super) struct FrameWriter {
    /// Symbols that do not fill a frame yet.
    pub(super) pending: Vec<u8>,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl FrameWriter {
    /// Appends frames to `bytes`, for channels of `plane` elements.
    pub(super) fn new(bytes: Vec<u8>, plane: usize) -> Self {
        Self { pending: Vec::with_capacity(FRAME.saturating_add(plane)), bytes, scratch: Scratch::default() }
    }

    /// Writes the frames that the pending symbols fill.
    pub(super) fn flush(&mut self, isa: Isa) {
        let whole = self.pending.len() / FRAME * FRAME;
        self.write(whole, isa);
    }

    /// Writes the remaining symbols, and returns all bytes.
    pub(super) fn finish(mut self, isa: Isa) -> Vec<u8> {
        self.write(self.pending.len(), isa);
        self.bytes
    }

    /// Writes a frame of the first `symbols` pending symbols.
    fn write(&mut self, symbols: usize, isa: Isa) {
        let Self { pending, scratch, bytes } = self;
        pending[..symbols].chunks(FRAME).for_each(|frame| scratch.write(frame, isa, bytes));
        pending.drain(..symbols);
    }
}

/// Buffers for making a frame.
#[derive(Debug, Default)]
struct Scratch {
    kept: Vec<u8>,
    string: Vec<u8>,
}

impl Scratch {
    fn write(&mut self, symbols: &[u8], isa: Isa, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + 1 + symbols.len().div_ceil(BLOCK).div_ceil(8), 0);
        self.kept.resize(symbols.len() + BLOCK, 0);
        let kept = compiled(isa, Compact { symbols, mask: &mut bytes[start + 1..], kept: &mut self.kept });
        let Some(&first) = self.kept[..kept].first() else {
            bytes.truncate(start);
            bytes.push(ALL_ZERO);
            return;
        };
        let lengths = huffman::lengths(&compiled(isa, Histogram { symbols: &self.kept[..kept] }));
        let Some(last) = lengths.iter().rposition(|&length| length > 0) else {
            bytes[start] = ONE_SYMBOL;
            bytes.push(first);
            return;
        };
        bytes[start] = CODED;
        bytes.push(last as u8);
        bytes.extend(lengths[..=last].chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4));
        self.strings(kept, &lengths, isa, bytes);
    }

    /// Writes the lengths of the strings, and the strings.
    fn strings(&mut self, kept: usize, lengths: &[u8; 256], isa: Isa, bytes: &mut Vec<u8>) {
        let mut codes = [Code::default(); 256];
        for ((code, &bits), &length) in codes.iter_mut().zip(&huffman::codes(lengths)).zip(lengths) {
            *code = Code::new(bits, length);
        }
        let sizes = bytes.len();
        bytes.resize(sizes + 4 * STREAMS, 0);
        self.string.resize(most_bytes(quarter(kept)), 0);
        let mut quarters = self.kept[..kept].chunks(quarter(kept));
        for stream in 0..STREAMS {
            let symbols = quarters.next().unwrap_or_default();
            let length = compiled(isa, Emit { symbols, codes: &codes, out: &mut self.string });
            bytes[sizes + 4 * stream..][..4].copy_from_slice(&(length as u32).to_le_bytes());
            bytes.extend_from_slice(&self.string[..length]);
        }
    }
}

/// Moves the blocks that are not all zero together, and marks them.
struct Compact<'a> {
    symbols: &'a [u8],
    mask: &'a mut [u8],
    /// One block longer than the symbols.
    kept: &'a mut [u8],
}

impl Loops for Compact<'_> {
    /// Symbols kept.
    type Output = usize;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> usize {
        let Self { symbols, mask, kept } = self;
        let mut at = 0;
        let (eights, rest) = symbols.as_chunks::<{ 8 * BLOCK }>();
        for (byte, eight) in mask.iter_mut().zip(eights) {
            for (bit, block) in eight.as_chunks::<BLOCK>().0.iter().enumerate() {
                // Always copied; the next block overwrites it if it is not kept.
                if let Some(kept) = kept[at..].first_chunk_mut() {
                    *kept = *block;
                }
                let is_kept = u64::from_le_bytes(*block) != 0;
                at += BLOCK * usize::from(is_kept);
                *byte |= u8::from(is_kept) << bit;
            }
        }
        for (bit, block) in rest.chunks(BLOCK).enumerate() {
            if block.iter().any(|&symbol| symbol != 0) {
                kept[at..at + block.len()].copy_from_slice(block);
                at += block.len();
                mask[eights.len()] |= 1 << bit;
            }
        }
        at
    }
}

/// Undoes [`Compact`].
struct Expand<'a> {
    mask: &'a [u8],
    /// One block longer than the kept symbols.
    kept: &'a [u8],
    symbols: &'a mut [u8],
}

impl Loops for Expand<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { mask, kept, symbols } = self;
        let mut at = 0;
        let (eights, rest) = symbols.as_chunks_mut::<{ 8 * BLOCK }>();
        let last = mask.get(eights.len()).copied().unwrap_or(0);
        for (byte, eight) in mask.iter().zip(eights) {
            for (bit, block) in eight.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                let is_kept = byte >> bit & 1;
                let next = kept.get(at..).and_then(|kept| kept.first_chunk()).copied().unwrap_or_default();
                // A product instead of a branch, which no processor can predict.
                *block = (u64::from_le_bytes(next) * u64::from(is_kept)).to_le_bytes();
                at += BLOCK * usize::from(is_kept);
            }
        }
        for (bit, block) in rest.chunks_mut(BLOCK).enumerate() {
            if last >> bit & 1 == 1 {
                block.copy_from_slice(&kept[at..at + block.len()]);
                at += block.len();
            }
        }
    }
}

/// Counts symbols, in four tables, so that a count does not wait for the previous store to the same count.
struct Histogram<'a> {
    symbols: &'a [u8],
}

impl Loops for Histogram<'_> {
    type Output = [u32; 256];

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> [u32; 256] {
        let mut tables = [[0_u32; 256]; 4];
        let (eights, rest) = self.symbols.as_chunks::<8>();
        for eight in eights {
            let word = u64::from_le_bytes(*eight);
            for i in 0..8 {
                tables[i % 4][(word >> (8 * i)) as usize & 0xFF] += 1;
            }
        }
        let [mut counts, tables @ ..] = tables;
        rest.iter().for_each(|&symbol| counts[usize::from(symbol)] += 1);
        for table in tables {
            counts.iter_mut().zip(table).for_each(|(count, more)| *count += more);
        }
        counts
    }
}

/// Reads symbols from frames.
pub(super) struct FrameReader<'a> {
    reader: Reader<'a>,
    /// Symbols of the frames that have not been read.
    left: usize,
    symbols: Vec<u8>,
    /// Symbols that have been returned.
    taken: usize,
    kept: Vec<u8>,
}

impl<'a> FrameReader<'a> {
    /// Reads `symbols` symbols in all.
    pub(super) fn new(reader: Reader<'a>, symbols: usize) -> Self {
        Self { reader, left: symbols, symbols: Vec::new(), taken: 0, kept: Vec::new() }
    }

    /// The next `count` symbols, of which at least that many must be left.
    pub(super) fn take(&mut self, count: usize, isa: Isa) -> Result<&[u8], CodecError> {
        if self.symbols.len() - self.taken < count {
            self.symbols.drain(..self.taken);
            self.taken = 0;
            while self.symbols.len() < count && self.left > 0 {
                let frame = self.left.min(FRAME);
                self.frame(frame, isa)?;
                self.left -= frame;
            }
        }
        let symbols = self.symbols.get(self.taken..self.taken + count);
        self.taken += count;
        symbols.ok_or_else(|| self.reader.damaged("it has fewer symbols than the records say"))
    }

    /// Fails unless everything has been read.
    pub(super) fn finish(&self) -> Result<(), CodecError> {
        self.reader.finish()
    }

    fn frame(&mut self, symbols: usize, isa: Isa) -> Result<(), CodecError> {
        let start = self.symbols.len();
        let kind = self.reader.u8()?;
        if kind == ALL_ZERO {
            self.symbols.resize(start + symbols, 0);
            return Ok(());
        }
        let mask = self.reader.take(symbols.div_ceil(BLOCK).div_ceil(8))?;
        let blocks: usize = mask.iter().map(|byte| byte.count_ones() as usize).sum();
        // The last block may be shorter, and no blocks follow it.
        let last = symbols.div_ceil(BLOCK) - 1;
        if mask[last / 8] >> (last % 8) > 1 {
            return Err(self.reader.damaged("a frame marks a block that it does not have"));
        }
        let short = if mask[last / 8] >> (last % 8) == 1 { (last + 1) * BLOCK - symbols } else { 0 };
        let kept = blocks * BLOCK - short;
        match kind {
            ONE_SYMBOL => {
                self.kept.clear();
                self.kept.resize(kept, self.reader.u8()?);
            }
            CODED => self.coded(kept, isa)?,
            _ => return Err(self.reader.damaged("a frame is of no known kind")),
        }
        self.kept.resize(kept + BLOCK, 0);
        self.symbols.resize(start + symbols, 0);
        compiled(isa, Expand { mask, kept: &self.kept, symbols: &mut self.symbols[start..] });
        Ok(())
    }

    fn coded(&mut self, kept: usize, isa: Isa) -> Result<(), CodecError> {
        let last = usize::from(self.reader.u8()?);
        let nibbles = self.reader.take((last + 1).div_ceil(2))?;
        let mut lengths = [0; 256];
        for (symbol, length) in lengths.iter_mut().take(last + 1).enumerate() {
            *length = nibbles[symbol / 2] >> (symbol % 2 * 4) & 0xF;
        }
        let table = huffman::table(&lengths)?;
        let mut sizes = [0; STREAMS];
        for size in &mut sizes {
            *size = self.reader.u32()? as usize;
        }
        let mut streams = [[].as_slice(); STREAMS];
        for (stream, size) in streams.iter_mut().zip(sizes) {
            *stream = self.reader.take(size)?;
        }
        self.kept.resize(kept, 0);
        compiled(isa, Read { streams, table: &table, symbols: &mut self.kept })
    }
}
