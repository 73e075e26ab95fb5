//! Global memory: buffers of words, and the sectors that warps touch.

use std::borrow::Cow;
use std::marker::PhantomData;

use haversack_gpu::counts::SECTOR;

/// The contents of a buffer.
#[derive(Clone, Debug)]
pub enum Storage<'a> {
    /// Floats.
    F32(Cow<'a, [f32]>),
    /// Integers: packed words, tickets, or floats in an order-preserving code.
    U32(Cow<'a, [u32]>),
    /// Doubles: partial sums.
    F64(Cow<'a, [f64]>),
}

/// A type of memory word.
pub trait Word: Copy + PartialOrd + Default + std::fmt::Debug + 'static {
    /// Its size, in bytes.
    const BYTES: u64;
    /// The words of a buffer of this type; empty for another type.
    fn words<'s>(storage: &'s Storage<'_>) -> &'s [Self];
    /// The words of a buffer of this type, mutably; empty for another type.
    fn words_mut<'s>(storage: &'s mut Storage<'_>) -> &'s mut [Self];
    /// A buffer of the given words.
    fn store(words: Cow<'_, [Self]>) -> Storage<'_>;
    /// The bit pattern.
    fn bits(self) -> u64;
    /// The word of a bit pattern.
    fn from_bits(bits: u64) -> Self;
    /// The sum; wrapping for integers.
    fn plus(self, other: Self) -> Self;
}

macro_rules! word {
    ($type:ty, $variant:ident, $bits:expr, $from:expr, $plus:expr) => {
        impl Word for $type {
            const BYTES: u64 = size_of::<$type>() as u64;
            fn words<'s>(storage: &'s Storage<'_>) -> &'s [Self] {
                match storage {
                    Storage::$variant(words) => words,
                    _ => &[],
                }
            }
            fn words_mut<'s>(storage: &'s mut Storage<'_>) -> &'s mut [Self] {
                match storage {
                    Storage::$variant(words) => words.to_mut(),
                    _ => &mut [],
                }
            }
            fn store(words: Cow<'_, [Self]>) -> Storage<'_> {
                Storage::$variant(words)
            }
            fn bits(self) -> u64 {
                $bits(self)
            }
            fn from_bits(bits: u64) -> Self {
                $from(bits)
            }
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    };
}
word!(f32, F32, |word: f32| u64::from(word.to_bits()), |bits| f32::from_bits(bits as u32), |a, b| a + b);
word!(u32, U32, u64::from, |bits| bits as u32, u32::wrapping_add);
word!(f64, F64, f64::to_bits, f64::from_bits, |a, b| a + b);

/// A buffer of global memory; it starts at the edge of a sector.
#[derive(Debug)]
pub struct Buffer<T> {
    index: usize,
    /// Bytes per word, as the GPU stores it.
    pub(crate) bytes: u64,
    word: PhantomData<T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

impl<T> Buffer<T> {
    pub(crate) fn index(self) -> usize {
        self.index
    }
}

/// The global memory of a machine.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Memory<'a> {
    pub(crate) buffers: Vec<Storage<'a>>,
    /// Bytes per word of each buffer.
    pub(crate) bytes: Vec<u64>,
}

impl<'a> Memory<'a> {
    /// A memory without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer that borrows `words`; the first write copies them.
    pub fn share<T: Word>(&mut self, words: &'a [T]) -> Buffer<T> {
        self.push(Cow::Borrowed(words), T::BYTES)
    }

    /// A buffer of `length` words, each `word`.
    pub fn fill<T: Word>(&mut self, length: usize, word: T) -> Buffer<T> {
        self.fill_as(T::BYTES, length, word)
    }

    /// The same, with words that the GPU stores in `bytes` bytes: for numbers that a narrower type represents exactly.
    pub(crate) fn fill_as<T: Word>(&mut self, bytes: u64, length: usize, word: T) -> Buffer<T> {
        self.push(Cow::Owned(vec![word; length]), bytes)
    }

    fn push<T: Word>(&mut self, words: Cow<'a, [T]>, bytes: u64) -> Buffer<T> {
        self.buffers.push(T::store(words));
        self.bytes.push(bytes);
        Buffer { index: self.buffers.len() - 1, bytes, word: PhantomData }
    }

    /// The contents of a buffer of this memory; empty for a buffer of another memory.
    pub fn words<T: Word>(&self, buffer: Buffer<T>) -> &[T] {
        self.buffers.get(buffer.index).map_or(&[], T::words)
    }

    pub(crate) fn words_mut<T: Word>(&mut self, buffer: Buffer<T>) -> &mut [T] {
        self.buffers.get_mut(buffer.index).map_or(&mut [], T::words_mut)
    }
}

/// Which sectors of which buffers were touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    buffers: Vec<Vec<u64>>,
}

impl Touched {
    /// Marks the sectors of bytes `first..end` of a buffer.
    pub(crate) fn mark(&mut self, buffer: usize, first: u64, end: u64) {
        if end <= first {
            return;
        }
        if self.buffers.len() <= buffer {
            self.buffers.resize_with(buffer + 1, Vec::new);
        }
        let (first, last) = (first / SECTOR, (end - 1) / SECTOR);
        let bits = &mut self.buffers[buffer];
        let words = usize::try_from(last / 64).unwrap_or(usize::MAX).saturating_add(1);
        if bits.len() < words {
            bits.resize(words, 0);
        }
        for sector in first..=last {
            bits[(sector / 64) as usize] |= 1 << (sector % 64);
        }
    }

    /// Bytes of all marked sectors.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.iter().flatten().map(|bits| u64::from(bits.count_ones())).sum::<u64>() * SECTOR
    }
}
