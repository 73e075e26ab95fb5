//! The kernels themselves: what one block does.

use haversack_devices::units::Bytes;

use crate::block::Block;
use crate::machine::{Kernel, Next};
use crate::memory::Buffer;
use crate::packing::{Access, Collected, Destination, MAGIC, NAME, Order, Packing, TO_VALUE, Tiles};
use crate::shared::Array;
use haversack_kernels::KernelError;
use haversack_kernels::quantise::Format;

/// Packs; one phase.
pub(super) struct Pack<'k> {
    pub(super) packing: &'k Packing,
    pub(super) format: Format,
    pub(super) elements: Buffer<f32>,
    pub(super) words: Buffer<u32>,
    pub(super) access: Access,
}

impl Pack<'_> {
    /// Elements that a block holds in shared memory.
    fn staged(&self) -> usize {
        let Tiles { tile_rows, tile_columns, columns } = self.packing.tiles;
        match (self.access, self.packing.order) {
            (Access::Direct, _) => 0,
            (Access::Staged, Order::Unified) => tile_rows * tile_columns.min(columns),
            (Access::Staged, _) => self.packing.threads as usize * self.packing.bits.per_word(),
        }
    }

    /// Shared memory of a block.
    pub(super) fn shared(&self) -> Bytes {
        Bytes(4 * self.staged() as u64)
    }
}

impl Kernel for Pack<'_> {
    type Registers = Option<Array<f32>>;
    const NAME: &'static str = NAME;

    fn start(&self, block: &mut Block<'_, '_>) -> Result<Self::Registers, KernelError> {
        let staged = self.staged();
        Ok((staged > 0).then(|| block.shared_array(staged)))
    }

    fn phase(&self, _: u32, staged: &mut Option<Array<f32>>, block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        let elements = self.packing.elements_to_pack(block.index());
        let threads = block.threads();
        let mut loaded = Vec::new();
        if let Some(staged) = *staged {
            let rows: Vec<_> = elements.chunks(threads).collect();
            let mut values = Vec::new();
            for row in &rows {
                block.gather(self.elements, &all(row.iter().copied()), &mut loaded)?;
                values.push(loaded.clone());
            }
            for (row, values) in values.iter().enumerate() {
                block.store_shared(staged, row * threads, values)?;
            }
            block.barrier();
        }
        for words in self.packing.collected(&self.format, &elements).chunks(threads) {
            let codes = words.iter().map(|collected| collected.codes.len()).max().unwrap_or(0);
            let mut packed = vec![0_u32; words.len()];
            for place in 0..codes {
                // Thread i takes the code in this place of its word, where it has one.
                let wanted = |collected: &Collected| collected.codes.get(place).copied();
                match *staged {
                    None => {
                        let of = |word| wanted(word).map(|(element, _)| elements[element]);
                        block.gather(self.elements, &words.iter().map(of).collect::<Vec<_>>(), &mut loaded)?;
                    }
                    Some(staged) => {
                        let of = |word| wanted(word).map(|(element, _)| element);
                        block.gather_shared(staged, &words.iter().map(of).collect::<Vec<_>>(), &mut loaded)?;
                    }
                }
                for ((word, packed), &value) in words.iter().zip(&mut packed).zip(&loaded) {
                    if let Some((element, shift)) = wanted(word) {
                        *packed += self.packing.code(value, elements[element]) << shift;
                    }
                }
            }
            block.operate(codes as u64 * self.packing.instructions_a_code() + 1, words.len());
            block.scatter(self.words, &all(words.iter().map(|collected| collected.word)), &packed)?;
        }
        Ok(Next::Done)
    }
}

/// Unpacks; one phase.
pub(super) struct Unpack<'k> {
    pub(super) packing: &'k Packing,
    pub(super) format: Format,
    pub(super) words: Buffer<u32>,
    pub(super) values: Buffer<f32>,
    pub(super) to: Destination,
}

impl Unpack<'_> {
    fn tile_size(&self) -> usize {
        let Tiles { tile_rows, tile_columns, columns } = self.packing.tiles;
        tile_rows * tile_columns.min(columns)
    }

    /// Shared memory of a block.
    pub(super) fn shared(&self) -> Bytes {
        Bytes(4 * self.tile_size() as u64)
    }
}

impl Kernel for Unpack<'_> {
    type Registers = Array<f32>;
    const NAME: &'static str = NAME;

    fn start(&self, block: &mut Block<'_, '_>) -> Result<Array<f32>, KernelError> {
        Ok(block.shared_array(self.tile_size()))
    }

    fn phase(&self, _: u32, tile: &mut Array<f32>, block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        let elements = self.packing.tile(block.index());
        let threads = block.threads();
        let mut loaded = Vec::new();
        for words in self.packing.collected(&self.format, &elements).chunks(threads) {
            block.gather(self.words, &all(words.iter().map(|collected| collected.word)), &mut loaded)?;
            let codes = words.iter().map(|collected| collected.codes.len()).max().unwrap_or(0);
            for place in 0..codes {
                let code = |(collected, &word): (&Collected, &u32)| {
                    let (element, shift) = *collected.codes.get(place)?;
                    let code = f32::from_bits(MAGIC | word >> shift & self.packing.bits.top()) - f32::from_bits(MAGIC);
                    Some((element, code.mul_add(self.packing.scale.step, self.packing.scale.minimum)))
                };
                let codes: Vec<Option<(usize, f32)>> = words.iter().zip(&loaded).map(code).collect();
                block.operate(TO_VALUE, words.len());
                block.scatter_shared(*tile, &codes)?;
            }
        }
        block.barrier();
        // Shared memory has the tile; the machine's caller gets it whatever the kernel does with it.
        for (first, elements) in elements.chunks(threads).enumerate() {
            if self.to == Destination::Global {
                let row = block.load_shared(*tile, first * threads, elements.len())?;
                block.scatter(self.values, &all(elements.iter().copied()), &row)?;
            } else {
                block.hand_over(self.values, elements, *tile, first * threads)?;
            }
        }
        Ok(Next::Done)
    }
}

fn all(indices: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
    indices.map(Some).collect()
}
