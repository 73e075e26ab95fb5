//! Symbols as four strings of bits, and back.
//!
//! Decoding one string is a chain of look-ups in which each waits for the one before; four strings take hardly longer
//! than one. String i contains the i-th quarter of the symbols.

use super::{CodecError, LONGEST, TABLE};
use crate::simd::Loops;

/// Strings side by side.
pub(super) const STREAMS: usize = 4;

/// Symbols of the first three strings; the last has the rest.
pub(super) const fn quarter(symbols: usize) -> usize {
    symbols.div_ceil(STREAMS)
}

/// The most bytes that a string of `symbols` symbols may take, plus a register's width for the last store.
pub(super) const fn most_bytes(symbols: usize) -> usize {
    (symbols * LONGEST).div_ceil(8) + 8
}

/// A code, in the highest bits, and its length, in the lowest six.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code(u64);

impl Code {
    /// A code whose first bit is its lowest.
    pub(super) fn new(bits: u16, length: u8) -> Self {
        Self(u64::from(bits).checked_shl(64 - u32::from(length)).unwrap_or(0) | u64::from(length))
    }
}

/// Writes one string; returns its bytes, the last filled up with zeros.
pub(super) struct Emit<'a> {
    pub(super) symbols: &'a [u8],
    pub(super) codes: &'a [Code; 256],
    /// At least [`most_bytes`].
    pub(super) out: &'a mut [u8],
}

impl Loops for Emit<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> usize {
        let Self { symbols, codes, out } = self;
        let mut string = Emitted { out, at: 0, held: 0, count: 0 };
        // Four codes are 48 bits, and at most 7 bits remain from before.
        let (fours, rest) = symbols.as_chunks::<4>();
        for four in fours {
            for i in 0..4 {
                string.push(codes[usize::from(four[i])]);
            }
            string.store();
        }
        for &symbol in rest {
            string.push(codes[usize::from(symbol)]);
            string.store();
        }
        string.at + usize::from(string.count > 0)
    }
}

/// A string that is being written.
struct Emitted<'a> {
    out: &'a mut [u8],
    /// Whole bytes that have been stored.
    at: usize,
    /// The newest bit is the highest. Bits below the 56 newest ones are garbage.
    held: u64,
    /// Bits in `held` that are not stored as whole bytes yet; garbage above the lowest six bits
    /// until all of them are stored.
    count: u64,
}

impl Emitted<'_> {
    /// Adds a code. Its length, in the same word, spoils the bits below those that count.
    #[inline(always)]
    fn push(&mut self, Code(code): Code) {
        self.held = self.held >> (code & 63) | code;
        self.count = self.count.wrapping_add(code);
    }

    /// Stores at least one bit and at most 56.
    #[inline(always)]
    fn store(&mut self) {
        let count = self.count & 63;
        if let Some(bytes) = self.out.get_mut(self.at..).and_then(|out| out.first_chunk_mut()) {
            *bytes = (self.held >> (count.wrapping_neg() & 63)).to_le_bytes();
        }
        self.at += (count >> 3) as usize;
        self.count = count & 7;
    }
}

/// Reads four strings.
pub(super) struct Read<'a> {
    pub(super) streams: [&'a [u8]; STREAMS],
    pub(super) table: &'a [u16; TABLE],
    pub(super) symbols: &'a mut [u8],
}

impl Loops for Read<'_> {
    type Output = Result<(), CodecError>;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> Self::Output {
        let Self { streams, table, symbols } = self;
        let [mut a, mut b, mut c, mut d] = streams.map(Stream::new);
        let quarter = quarter(symbols.len());
        let (first, rest) = symbols.split_at_mut(quarter);
        let (second, rest) = rest.split_at_mut(quarter.min(rest.len()));
        let (third, fourth) = rest.split_at_mut(quarter.min(rest.len()));
        let mut done = 0;
        for (((w, x), y), z) in fours(first).zip(fours(second)).zip(fours(third)).zip(fours(fourth)) {
            if !(a.fill() && b.fill() && c.fill() && d.fill()) {
                break;
            }
            for i in 0..4 {
                (w[i], x[i], y[i], z[i]) = (a.next(table), b.next(table), c.next(table), d.next(table));
            }
            done += 4;
        }
        for (mut stream, symbols) in [(a, first), (b, second), (c, third), (d, fourth)] {
            for symbol in &mut symbols[done..] {
                stream.fill_at_end();
                *symbol = stream.next(table);
            }
            stream.finish()?;
        }
        Ok(())
    }
}

fn fours(symbols: &mut [u8]) -> impl Iterator<Item = &mut [u8; 4]> {
    symbols.as_chunks_mut::<4>().0.iter_mut()
}

/// A string that is being read.
struct Stream<'a> {
    bytes: &'a [u8],
    /// The byte after those that `count` includes; beyond the end, zeros are read.
    at: usize,
    held: u64,
    count: u32,
}

impl<'a> Stream<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, held: 0, count: 0 }
    }

    /// Fills up to at least 56 bits, unless the string is about to end.
    #[inline(always)]
    fn fill(&mut self) -> bool {
        let Some(bytes) = self.bytes.get(self.at..self.at + 8).and_then(|bytes| bytes.first_chunk::<8>()) else {
            return false;
        };
        // Bits above `count` may be set already: to the same values.
        self.held |= u64::from_le_bytes(*bytes) << self.count;
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
        true
    }

    /// Fills up to at least the bits of the longest code.
    #[inline(always)]
    fn fill_at_end(&mut self) {
        while self.count < LONGEST as u32 {
            self.held |= u64::from(self.bytes.get(self.at).copied().unwrap_or(0)) << self.count;
            self.at += 1;
            self.count += 8;
        }
    }

    #[inline(always)]
    fn next(&mut self, table: &[u16; TABLE]) -> u8 {
        let entry = table[self.held as usize % TABLE];
        let length = u32::from(entry >> 8);
        self.held >>= length;
        self.count -= length;
        entry as u8
    }

    /// Fails unless the string ended within its last byte.
    fn finish(&self) -> Result<(), CodecError> {
        let used = 8 * self.at - self.count as usize;
        if used.div_ceil(8) == self.bytes.len() {
            Ok(())
        } else {
            Err(CodecError::damaged("a frame", "its codes do not end where it does"))
        }
    }
}
