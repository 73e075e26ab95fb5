//! An element-wise kernel: the square of every element.

use haversack_devices::KernelCounts;
use haversack_devices::units::Bytes;
use haversack_gpu::Machine;
use haversack_kernels::KernelError;

use super::block::Block;
use super::machine::{Kernel, Launch, Next, Run};
use super::memory::{Buffer, Memory};

const THREADS: u32 = 256;
/// Elements per thread: one vector load.
const VECTOR: u32 = 4;

/// The squares of `data` as an element-wise kernel computes them, and its counts.
pub fn squares(data: &[f32], machine: &Machine) -> Result<(Vec<f32>, KernelCounts), KernelError> {
    let mut memory = Memory::new();
    let (from, to) = (memory.share(data), memory.fill(data.len(), 0.0_f32));
    let blocks = (data.len() as u64).div_ceil(u64::from(THREADS * VECTOR)).max(1);
    let blocks_per_unit = machine.blocks_per_unit("squares", THREADS, Bytes::ZERO)?;
    let launch = Launch { blocks, threads: THREADS, blocks_per_unit, epilogue: false };
    let counts = machine.run(&mut memory, &Squares { from, to, length: data.len() }, &launch)?;
    Ok((memory.words(to).to_vec(), counts))
}

struct Squares {
    from: Buffer<f32>,
    to: Buffer<f32>,
    length: usize,
}

impl Kernel for Squares {
    type Registers = ();
    const NAME: &'static str = "squares";

    fn start(&self, _: &mut Block<'_, '_>) -> Result<(), KernelError> {
        Ok(())
    }

    fn phase(&self, _: u32, (): &mut (), block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        let tile = block.threads() * VECTOR as usize;
        let first = block.index() as usize * tile;
        let last = (first + tile).min(self.length);
        let mut rows = Vec::new();
        for row in (first..last).step_by(block.threads()) {
            let active = (last - row).min(block.threads());
            rows.push((row, block.load_row(self.from, row, active)?.to_vec()));
        }
        for (row, mut words) in rows {
            block.operate(1, words.len());
            words.iter_mut().for_each(|word| *word *= *word);
            block.store_row(self.to, row, &words)?;
        }
        Ok(Next::Done)
    }
}
