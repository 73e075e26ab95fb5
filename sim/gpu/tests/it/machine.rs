//! The machine itself, tested by kernels written for the purpose.

use haversack_devices::KernelCounts;
use haversack_devices::units::Bytes;
use haversack_gpu::Update;
use haversack_kernels::KernelError;

use crate::common::machine;
use crate::simt::atomic::Operation;
use crate::simt::block::Block;
use crate::simt::machine::{Kernel, Launch, Next, Run as _};
use crate::simt::memory::{Buffer, Memory};

/// A kernel of one phase without registers.
struct Phase<F>(F);

impl<F: Fn(&mut Block<'_, '_>) -> Result<(), KernelError>> Kernel for Phase<F> {
    type Registers = ();
    const NAME: &'static str = "a test";
    fn start(&self, _: &mut Block<'_, '_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn phase(&self, _: u32, (): &mut (), block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        (self.0)(block)?;
        Ok(Next::Done)
    }
}

fn grid(blocks: u64, threads: u32) -> Launch {
    Launch { blocks, threads, blocks_per_unit: 2, epilogue: false }
}

/// One block of 256 threads that loads words `stride` apart.
fn strided(stride: usize) -> KernelCounts {
    let mut memory = Memory::new();
    let data = memory.fill(256 * stride, 1.0_f32);
    let kernel = Phase(|block: &mut Block<'_, '_>| {
        let indices: Vec<Option<usize>> = (0..block.threads()).map(|thread| Some(thread * stride)).collect();
        block.gather(data, &indices, &mut Vec::new())
    });
    machine(2, 2).run(&mut memory, &kernel, &grid(1, 256)).unwrap()
}

#[test]
fn side_by_side_loads_move_their_bytes_and_strided_ones_up_to_eight_times_as_many() {
    // 256 x 4 B = 1024 B; from a stride of 8 words on, every word is a sector of 32 B.
    let read = [1, 2, 4, 8, 16, 33].map(|stride| strided(stride).read.0);
    assert_eq!(read, [1024, 2048, 4096, 8192, 8192, 8192]);
}

#[test]
fn a_row_that_starts_inside_a_sector_touches_one_more() {
    // A warp of 32 words from word 1 on covers bytes 4 to 132: sectors 0 to 4, five instead of four.
    let mut memory = Memory::new();
    let data = memory.fill(64, 1.0_f32);
    let kernel = Phase(|block: &mut Block<'_, '_>| block.load_row(data, 1, 32).map(|_| ()));
    let counts = machine(1, 1).run(&mut memory, &kernel, &grid(1, 32)).unwrap();
    assert_eq!((counts.read, counts.working_set), (Bytes(160), Bytes(160)));
}

#[test]
fn loads_in_a_row_are_one_trip_and_a_use_between_makes_two() {
    let trips = |together: bool| {
        let mut memory = Memory::new();
        let data = memory.fill(64, 1.0_f32);
        let kernel = Phase(|block: &mut Block<'_, '_>| {
            block.load_row(data, 0, 32)?;
            if !together {
                block.operate(1, 32);
            }
            block.load_row(data, 32, 32)?;
            block.operate(1, 32);
            Ok(())
        });
        machine(1, 1).run(&mut memory, &kernel, &grid(1, 32)).unwrap().round_trips
    };
    assert_eq!((trips(true), trips(false)), (1, 2));
}

#[test]
fn ten_blocks_of_which_four_are_resident_are_three_waves() {
    let kernel = Phase(|block: &mut Block<'_, '_>| {
        block.operate(3, 10);
        Ok(())
    });
    let counts = machine(2, 2).run(&mut Memory::new(), &kernel, &grid(10, 64)).unwrap();
    assert_eq!((counts.waves, counts.resident_blocks, counts.blocks), (3, 4, 10));
    // Ten threads keep a warp of 32 lanes busy for three instructions.
    assert_eq!((counts.operations, counts.lane_operations), (3, 10 * 3 * 32));
}

/// Thread i stores word i, optionally waits, and the first warp loads the words that the second stored.
fn exchange(waits: bool) -> Result<KernelCounts, KernelError> {
    let kernel = Phase(|block: &mut Block<'_, '_>| {
        let array = block.shared_array::<u32>(64);
        block.store_shared(array, 0, &(0..64).collect::<Vec<u32>>())?;
        if waits {
            block.barrier();
        }
        assert_eq!(block.load_shared(array, 32, 32)?, (32..64).collect::<Vec<u32>>());
        Ok(())
    });
    machine(1, 1).run(&mut Memory::new(), &kernel, &grid(1, 64))
}

#[test]
fn a_missing_barrier_is_found() {
    assert_eq!(exchange(true).unwrap().barriers, 1);
    let error = exchange(false).unwrap_err().to_string();
    assert!(error.contains("a barrier is missing"), "{error}");
}

#[test]
fn a_tree_of_shuffles_gives_the_first_lane_the_sum_of_its_warp() {
    let kernel = Phase(|block: &mut Block<'_, '_>| {
        let mut words: Vec<u32> = (0..64).collect();
        for distance in [16, 8, 4, 2, 1] {
            block.shuffle_down(&mut words, 4, 64, distance, |a, b| a + b);
        }
        // 0 + ... + 31 = 496; 32 + ... + 63 = 1520.
        assert_eq!((words[0], words[32]), (496, 1520));
        let mut words: Vec<u32> = (0..64).collect();
        block.shuffle_down(&mut words, 4, 64, 16, |_, b| b);
        // The upper lanes have no lane to read from.
        assert_eq!((words[0], words[15], words[16], words[32]), (16, 31, 16, 48));
        Ok(())
    });
    // Two warps, six shuffles each.
    assert_eq!(machine(1, 1).run(&mut Memory::new(), &kernel, &grid(1, 64)).unwrap().shuffles, 12);
}

/// Every thread draws a ticket, then writes its own number at that index.
struct Tickets {
    counter: Buffer<u32>,
    places: Buffer<u32>,
}

impl Kernel for Tickets {
    type Registers = ();
    const NAME: &'static str = "tickets";
    fn start(&self, _: &mut Block<'_, '_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn phase(&self, phase: u32, (): &mut (), block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        if phase == 0 {
            block.atomic(self.counter, 0, Operation::Add, Update::Unconditional, &vec![1_u32; block.threads()]);
            return Ok(Next::Atomics);
        }
        let places: Vec<Option<usize>> =
            (0..block.threads()).map(|thread| block.seen::<u32>(thread).map(|ticket| ticket as usize)).collect();
        let first = block.index() as u32 * block.threads() as u32;
        let own: Vec<u32> = (first..first + block.threads() as u32).collect();
        block.scatter(self.places, &places, &own)?;
        Ok(Next::Done)
    }
}

#[test]
fn an_atomic_tells_each_thread_what_it_found() {
    let mut memory = Memory::new();
    let kernel = Tickets { counter: memory.fill(1, 0), places: memory.fill(320, u32::MAX) };
    let counts = machine(2, 2).run(&mut memory, &kernel, &grid(10, 32)).unwrap();
    assert_eq!(memory.words(kernel.counter), [320]);
    let mut drawn = memory.words(kernel.places).to_vec();
    drawn.sort_unstable();
    // Every ticket once, every thread once.
    assert_eq!(drawn, (0..320).collect::<Vec<u32>>());
    // Waves of 4, 4 and 2 blocks of 32: 128 x 127 / 2 failures twice, 64 x 63 / 2 once.
    assert_eq!(counts.atomics[0].retries, (2 * 8128 + 2016) as f64);
}

#[test]
fn what_lies_outside_is_refused() {
    let mut memory = Memory::new();
    let data = memory.fill(64, 1.0_f32);
    let row = Phase(|block: &mut Block<'_, '_>| block.load_row(data, 40, 32).map(|_| ()));
    let error = machine(1, 1).run(&mut memory, &row, &grid(1, 32)).unwrap_err().to_string();
    assert!(error.contains("block 0: word 71 is outside a buffer of 64"), "{error}");
    let cell = Phase(|block: &mut Block<'_, '_>| {
        block.atomic(data, 64, Operation::Add, Update::Native, &[1.0]);
        Ok(())
    });
    assert!(machine(1, 1).run(&mut memory, &cell, &grid(1, 32)).is_err());
    let hoard = Phase(|block: &mut Block<'_, '_>| {
        block.shared_array::<f64>(12_289);
        Ok(())
    });
    // 12,289 x 8 B is 8 B over 96 KiB.
    let error = machine(1, 1).run(&mut memory, &hoard, &grid(1, 32)).unwrap_err().to_string();
    assert!(error.contains("shared memory"), "{error}");
    let idle = Phase(|_: &mut Block<'_, '_>| Ok(()));
    for launch in [grid(0, 32), grid(1, 0), grid(1, 1025), Launch { blocks_per_unit: 0, ..grid(1, 32) }] {
        assert!(machine(1, 1).run(&mut memory, &idle, &launch).is_err(), "{launch:?}");
    }
}
