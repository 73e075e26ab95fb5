//! Packing and unpacking as GPU kernels, in the layouts of DAF's section 3.3, to the bits of [`haversack_kernels::quantise`].
//!
//! Packing: a block owns words. Read directly, thread i collects the elements of word i one by one, so that a warp's
//! loads lie a word's codes apart in the sequential layout, and side by side in the interleaved one. Staged, the block
//! loads its elements side by side into shared memory and collects them there.
//!
//! Unpacking: a block owns a tile of the matrix that the consuming kernel works on, and loads the words that hold its
//! elements. A tile of an unified layout is a run of words. In the other layouts its rows lie apart, and words at
//! their ends, or all of them where codes of neighbouring tiles share words, are loaded for a part of their codes.
//!
//! Codes become floats and floats codes by an addition of 2^23 (equation 5), never by a conversion.

mod kernels;

use haversack_devices::KernelCounts;
use haversack_devices::units::Bytes;

use crate::machine::{Launch, Machine};
use crate::memory::Memory;
use crate::packing::kernels::{Pack, Unpack};
use haversack_kernels::KernelError;
use haversack_kernels::quantise::{Bits, Format, Grouping, Layout, Rounding, Scale, Slot, code};

/// Instructions that turn an element into a code in its place: subtract, bound, multiply-add, bound, shift-and-add.
const TO_CODE: u64 = 5;
/// Instructions that a stochastic draw adds: two rounds of a hash, and a conversion.
const DRAW: u64 = 14;
/// Instructions that turn a code into an element: shift-and-mask, OR, subtract, multiply-add.
const TO_VALUE: u64 = 4;
/// Sixteen words: the interleaved layout's unit.
const LANES: u32 = haversack_kernels::quantise::LANES as u32;

/// The largest tensor: 8 GiB of f32.
const MOST_ELEMENTS: usize = 1 << 31;

/// A layout, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// A word holds neighbouring elements: what a GPU thread that owns a word reads.
    Sequential,
    /// What SIMD packing on a CPU writes.
    Interleaved,
    /// Tile by tile, each interleaved.
    Unified,
}

/// A tensor as a row-major matrix, and the tiles that a GPU works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tiles {
    /// Columns of the matrix.
    pub columns: usize,
    /// Rows of a tile; fewer at the lower edge.
    pub tile_rows: usize,
    /// Columns of a tile; fewer at the right edge.
    pub tile_columns: usize,
}

/// How a packing block reads its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Each thread from global memory, one element of its word after the other.
    Direct,
    /// The block together into shared memory, in the tensor's order.
    Staged,
}

/// Where an unpacking block leaves its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// In its shared memory: the first steps of the kernel that consumes the tensor, which is launched anyway.
    Shared,
    /// In an unpacked tensor in global memory.
    Global,
}

/// A packed tensor on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packing {
    /// Elements of the tensor.
    pub length: usize,
    /// Bits of a code.
    pub bits: Bits,
    /// The layout.
    pub order: Order,
    /// The tiles.
    pub tiles: Tiles,
    /// Minimum and step of the whole tensor.
    pub scale: Scale,
    /// How codes are rounded.
    pub rounding: Rounding,
    /// Threads of a block: a multiple of 16.
    pub threads: u32,
}

impl Packing {
    /// The format that [`haversack_kernels::quantise`] knows it by.
    ///
    /// # Errors
    /// More than 2^31 elements; tiles or a matrix without rows or columns.
    pub fn format(&self) -> Result<Format, KernelError> {
        if self.length > MOST_ELEMENTS {
            return Err(KernelError::Length { what: "the tensor", found: self.length, expected: MOST_ELEMENTS });
        }
        let Tiles { columns, tile_rows, tile_columns } = self.tiles;
        // Whatever the order, the tiles are what a consumer reads.
        let unified = Layout::unified(columns, tile_rows, tile_columns)?;
        let layout = match self.order {
            Order::Sequential => Layout::Sequential,
            Order::Interleaved => Layout::Interleaved,
            Order::Unified => unified,
        };
        Ok(Format::new(self.bits, Grouping::Tensor, layout))
    }

    /// Packs `values` as a kernel, into [`Format::words`] words.
    ///
    /// # Errors
    /// Another number of values; a last row that is not whole; a block that does not fit the machine.
    pub fn pack(
        &self,
        values: &[f32],
        access: Access,
        machine: &Machine,
    ) -> Result<(Vec<u32>, KernelCounts), KernelError> {
        KernelError::expect_length("the tensor", values.len(), self.length)?;
        let (format, mut memory) = (self.format()?, Memory::new());
        let elements = memory.share(values);
        let words = memory.fill(format.words(self.length), 0_u32);
        let kernel = Pack { packing: self, format, elements, words, access };
        let launch = self.launch(self.blocks_to_pack(&format), kernel.shared(), false, machine)?;
        let counts = machine.run(&mut memory, &kernel, &launch)?;
        Ok((memory.words(words).to_vec(), counts))
    }

    /// Unpacks `words` as a kernel, tile by tile; the values are those of the tensor, wherever the tiles are left.
    ///
    /// # Errors
    /// Another number of words; a last row that is not whole; a tile that does not fit shared memory.
    pub fn unpack(
        &self,
        words: &[u32],
        to: Destination,
        machine: &Machine,
    ) -> Result<(Vec<f32>, KernelCounts), KernelError> {
        let (format, mut memory) = (self.format()?, Memory::new());
        KernelError::expect_length("the buffer of words", words.len(), format.words(self.length))?;
        let words = memory.share(words);
        let values = memory.fill(self.length, 0.0_f32);
        let kernel = Unpack { packing: self, format, words, values, to };
        let launch = self.launch(self.tiles_in_all(), kernel.shared(), to == Destination::Shared, machine)?;
        let counts = machine.run(&mut memory, &kernel, &launch)?;
        Ok((memory.words(values).to_vec(), counts))
    }

    /// What [`pack`](Self::pack) counts, without data; from a sample of the blocks where there are many.
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
    pub fn pack_counts(&self, access: Access, machine: &Machine) -> Result<KernelCounts, KernelError> {
        let (format, mut memory) = (self.format()?, Memory::new());
        let elements = memory.fill(self.length, 0.0_f32);
        let words = memory.fill(format.words(self.length), 0_u32);
        let kernel = Pack { packing: self, format, elements, words, access };
        let launch = self.launch(self.blocks_to_pack(&format), kernel.shared(), false, machine)?;
        let counts = machine.sample(&mut memory, &kernel, &launch)?;
        Ok(KernelCounts { working_set: self.touched(&format, true), ..counts })
    }

    /// What [`unpack`](Self::unpack) counts, without data; from a sample of the tiles where there are many.
    ///
    /// # Errors
    /// As [`unpack`](Self::unpack).
    pub fn unpack_counts(&self, to: Destination, machine: &Machine) -> Result<KernelCounts, KernelError> {
        let (format, mut memory) = (self.format()?, Memory::new());
        let words = memory.fill(format.words(self.length), 0_u32);
        let values = memory.fill(self.length, 0.0_f32);
        let kernel = Unpack { packing: self, format, words, values, to };
        let launch = self.launch(self.tiles_in_all(), kernel.shared(), to == Destination::Shared, machine)?;
        let counts = machine.sample(&mut memory, &kernel, &launch)?;
        Ok(KernelCounts { working_set: self.touched(&format, to == Destination::Global), ..counts })
    }

    /// Bytes of the packed tensor, and of the unpacked one where it is in global memory too.
    fn touched(&self, format: &Format, unpacked: bool) -> Bytes {
        let whole = |words: usize| (4 * words as u64).div_ceil(32) * 32;
        Bytes(whole(format.words(self.length)) + if unpacked { whole(self.length) } else { 0 })
    }

    fn launch(&self, blocks: u64, shared: Bytes, epilogue: bool, machine: &Machine) -> Result<Launch, KernelError> {
        let refuse = |reason: String| Err(KernelError::Launch { kernel: NAME, reason });
        if !self.threads.is_multiple_of(LANES) {
            return refuse(format!("a block of {} threads; expected a multiple of {LANES}", self.threads));
        }
        if !self.length.is_multiple_of(self.tiles.columns) {
            let (found, expected) = (self.length % self.tiles.columns, self.tiles.columns);
            return Err(KernelError::Length { what: "the matrix's last row", found, expected });
        }
        let blocks_per_unit = machine.blocks_per_unit(NAME, self.threads, shared)?;
        Ok(Launch { blocks: blocks.max(1), threads: self.threads, blocks_per_unit, epilogue })
    }

    fn blocks_to_pack(&self, format: &Format) -> u64 {
        match self.order {
            Order::Unified => self.tiles_in_all(),
            _ => (format.words(self.length) as u64).div_ceil(u64::from(self.threads)),
        }
    }

    fn across(&self) -> usize {
        self.tiles.columns.div_ceil(self.tiles.tile_columns)
    }

    fn tiles_in_all(&self) -> u64 {
        ((self.length / self.tiles.columns).div_ceil(self.tiles.tile_rows) * self.across()) as u64
    }

    /// The elements of a tile, row by row.
    fn tile(&self, index: u64) -> Vec<usize> {
        let Tiles { columns, tile_rows, tile_columns } = self.tiles;
        let (band, place) = (index as usize / self.across(), index as usize % self.across());
        let rows = band * tile_rows..((band + 1) * tile_rows).min(self.length / columns);
        let (left, right) = (place * tile_columns, ((place + 1) * tile_columns).min(columns));
        rows.flat_map(|row| row * columns + left..row * columns + right).collect()
    }

    /// The elements whose words a packing block owns, in the tensor's order.
    fn elements_to_pack(&self, block: u64) -> Vec<usize> {
        if self.order == Order::Unified {
            return self.tile(block);
        }
        let each = self.threads as usize * self.bits.per_word();
        let first = block as usize * each;
        (first..(first + each).min(self.length)).collect()
    }

    /// The words that hold `elements`, in order.
    fn collected(&self, format: &Format, elements: &[usize]) -> Vec<Collected> {
        let mut codes: Vec<(Slot, usize)> = elements
            .iter()
            .enumerate()
            .filter_map(|(place, &element)| Some((format.slot(element, self.length)?, place)))
            .collect();
        codes.sort_by_key(|(slot, _)| (slot.word, slot.shift));
        let of_word = |codes: &[(Slot, usize)]| {
            let word = codes.first().map_or(0, |(slot, _)| slot.word);
            Collected { word, codes: codes.iter().map(|(slot, place)| (*place, slot.shift)).collect() }
        };
        codes.chunk_by(|(a, _), (b, _)| a.word == b.word).map(of_word).collect()
    }

    /// The code of a value, by 2^23: the addition leaves no bits for a fraction, and the code in the low ones.
    fn code(&self, value: f32, element: usize) -> u32 {
        match self.rounding {
            Rounding::NearestEven => {
                let above = value - self.scale.minimum;
                let above = if above > 0.0 { above } else { 0.0 };
                let top = f32::from_bits(MAGIC + self.bits.top());
                let rounded = above.mul_add(self.scale.inverse(), f32::from_bits(MAGIC));
                (if rounded < top { rounded } else { top }).to_bits() - MAGIC
            }
            rounding @ Rounding::Stochastic { .. } => u32::from(code(value, self.scale, self.bits, rounding, element)),
        }
    }

    fn instructions_a_code(&self) -> u64 {
        match self.rounding {
            Rounding::NearestEven => TO_CODE,
            Rounding::Stochastic { .. } => TO_CODE + DRAW,
        }
    }
}

/// A word and those of its codes that matter to a block.
struct Collected {
    word: usize,
    /// For each, its place among the block's elements, and how many bits up it lies.
    codes: Vec<(usize, u32)>,
}

const NAME: &str = "a packing kernel";
/// The bits of 2^23.
const MAGIC: u32 = 0x4B00_0000;
