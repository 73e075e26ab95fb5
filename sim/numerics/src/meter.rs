//! Counted buffers: how many bytes of tensors and scratch space a run really uses.
//!
//! A [`Meter`] hands out buffers of f32, i64 and u8 and counts the bytes that are handed out, now and at most. Returned
//! buffers are kept for the next one of the same length, so that a training step, which needs the same lengths again
//! and again, does not have the operating system clear fresh pages each time.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A counted buffer of f32.
pub type Floats = Buffer<f32>;
/// A counted buffer of 64-bit integers: labels, token ids, indices of maxima.
pub type Integers = Buffer<i64>;
/// A counted buffer of bytes: masks and packed values.
pub type Bytes = Buffer<u8>;
/// A counted buffer of eight-bit values.
pub type Codes = Buffer<i8>;
/// A counted buffer of 32-bit sums.
pub type Sums = Buffer<i32>;

/// The most bytes that free lists keep, unless [`Meter::keeping`] sets another limit.
const KEPT_AT_MOST: u64 = 1 << 30;

/// Counts the bytes of the buffers that it hands out; its clones share one count.
#[derive(Clone, Debug)]
#[must_use]
pub struct Meter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    live: AtomicU64,
    peak: AtomicU64,
    kept: AtomicU64,
    keep_at_most: u64,
    floats: Free<f32>,
    integers: Free<i64>,
    bytes: Free<u8>,
    codes: Free<i8>,
    sums: Free<i32>,
}

/// Returned blocks, by length.
type Free<T> = Mutex<HashMap<usize, Vec<Box<[T]>>>>;

impl Default for Meter {
    /// A meter with nothing handed out.
    fn default() -> Self {
        Self::keeping(KEPT_AT_MOST)
    }
}

impl Meter {
    /// A meter whose free lists keep at most `bytes` bytes.
    pub fn keeping(bytes: u64) -> Self {
        Self(Arc::new(Shared { keep_at_most: bytes, ..Shared::default() }))
    }

    /// A buffer of `len` f32 whose contents are unspecified: the caller writes all of it.
    pub fn floats(&self, len: usize) -> Floats {
        Buffer::new(self, len, false)
    }

    /// A buffer of `len` zeros.
    pub fn zeros(&self, len: usize) -> Floats {
        Buffer::new(self, len, true)
    }

    /// A buffer of `len` integers whose contents are unspecified.
    pub fn integers(&self, len: usize) -> Integers {
        Buffer::new(self, len, false)
    }

    /// A buffer of `len` bytes whose contents are unspecified.
    pub fn bytes(&self, len: usize) -> Bytes {
        Buffer::new(self, len, false)
    }

    /// A buffer of `len` eight-bit values whose contents are unspecified.
    pub fn codes(&self, len: usize) -> Codes {
        Buffer::new(self, len, false)
    }

    /// A buffer of `len` sums, all zero.
    pub fn sums(&self, len: usize) -> Sums {
        Buffer::new(self, len, true)
    }

    /// A counted copy.
    pub fn copy<T: Element>(&self, values: &[T]) -> Buffer<T> {
        let mut buffer = Buffer::new(self, values.len(), false);
        buffer.copy_from_slice(values);
        buffer
    }

    /// Bytes that are handed out now.
    pub fn live(&self) -> u64 {
        self.0.live.load(Ordering::Relaxed)
    }

    /// The most bytes that were handed out at the same time.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Bytes that free lists keep for the next buffers; [`live`](Self::live) does not count them.
    pub fn kept(&self) -> u64 {
        self.0.kept.load(Ordering::Relaxed)
    }

    fn take<T: Element>(&self, len: usize) -> Option<Box<[T]>> {
        let mut free = T::free(&self.0).lock().unwrap_or_else(PoisonError::into_inner);
        let block = free.get_mut(&len)?.pop()?;
        self.0.kept.fetch_sub(size_of_val(&*block) as u64, Ordering::Relaxed);
        Some(block)
    }

    fn give_back<T: Element>(&self, block: Box<[T]>) {
        let bytes = size_of_val(&*block) as u64;
        let mut free = T::free(&self.0).lock().unwrap_or_else(PoisonError::into_inner);
        self.0.live.fetch_sub(bytes, Ordering::Relaxed);
        if bytes > 0 && self.kept() + bytes <= self.0.keep_at_most {
            self.0.kept.fetch_add(bytes, Ordering::Relaxed);
            free.entry(block.len()).or_default().push(block);
        }
    }
}

/// The element type of a buffer; implemented only for those of [`Floats`], [`Integers`],
/// [`Bytes`], [`Codes`] and [`Sums`].
pub trait Element: sealed::Element {}

impl<T: sealed::Element> Element for T {}

mod sealed {
    /// See [`super::Element`].
    pub trait Element: Copy + Default + std::fmt::Debug + 'static {
        /// The free blocks of this type.
        #[allow(private_interfaces)]
        fn free(of: &super::Shared) -> &super::Free<Self>;
    }
}

macro_rules! element {
    ($($type:ty: $field:ident),+) => { $(
        #[allow(private_interfaces)]
        impl sealed::Element for $type {
            fn free(of: &Shared) -> &Free<Self> {
                &of.$field
            }
        }
    )+ };
}
element!(f32: floats, i64: integers, u8: bytes, i8: codes, i32: sums);

/// A slice that a [`Meter`] counts for as long as it lives.
#[derive(Debug)]
#[must_use]
pub struct Buffer<T: Element> {
    block: Box<[T]>,
    meter: Meter,
}

impl<T: Element> Buffer<T> {
    fn new(meter: &Meter, len: usize, cleared: bool) -> Self {
        let bytes = (len * size_of::<T>()) as u64;
        let live = meter.0.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        meter.0.peak.fetch_max(live, Ordering::Relaxed);
        let block = match meter.take(len) {
            Some(mut block) => {
                if cleared {
                    block.fill(T::default());
                }
                block
            }
            None => vec![T::default(); len].into_boxed_slice(),
        };
        Self { block, meter: meter.clone() }
    }

    /// Keeps the first `len` elements, where they are.
    pub fn truncate(&mut self, len: usize) {
        if len < self.block.len() {
            let before = self.size();
            let mut block = std::mem::take(&mut self.block).into_vec();
            block.truncate(len);
            self.block = block.into_boxed_slice();
            self.meter.0.live.fetch_sub(before - self.size(), Ordering::Relaxed);
        }
    }

    /// Bytes of the buffer.
    pub fn size(&self) -> u64 {
        size_of_val(&*self.block) as u64
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.block
    }
}

impl<T: Element> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.block
    }
}

impl<T: Element> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        self.meter.copy(&self.block)
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.meter.give_back(std::mem::take(&mut self.block));
    }
}
