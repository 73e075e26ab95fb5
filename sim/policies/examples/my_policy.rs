//! A whole new policy, and a run under it: `cargo run -p haversack-policies --example my_policy`.

use std::cmp::Reverse;
use std::error::Error;

use haversack_devices::{load, load_stack, processor::Frequency, units::Bytes};
use haversack_policies::{MemoryView, Policy, PolicyError, Relief, Want};
use haversack_training::{Budgets, Job, Machine, Record, Trains, simulate};
use haversack_workloads::autograd::{EagerRules, differentiate};
use haversack_workloads::{TensorId, models};

/// Drops the tensor with the latest next use (Belady's rule); it is computed again then.
struct FarthestFirst;

impl Policy for FarthestFirst {
    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let mut candidates: Vec<TensorId> = memory.candidates.iter().collect();
        // Candidates come in arbitrary order: among equals the lower id goes.
        candidates.sort_by_key(|&tensor| (Reverse(memory.tensors[tensor as usize].next_use), tensor));
        let (mut left, mut reliefs) = (want.bytes(), Vec::new());
        for tensor in candidates {
            if left == Bytes::ZERO {
                break;
            }
            left = left.saturating_sub(memory.tensors[tensor as usize].bytes);
            reliefs.push(Relief::Rematerialise(tensor));
        }
        Ok(reliefs)
    }
}

/// A batch of 32 on a phone's GPU, with an optional memory budget in bytes.
pub(crate) fn run(memory: Option<Bytes>) -> Result<Record, Box<dyn Error>> {
    let (device, stack) = (load("galaxy-s10")?, load_stack("sage-opencl")?);
    let machine = Machine::new(device, stack, Trains::Either, None, Frequency::default())?;
    let graph = differentiate(&models::build("resnet18-cifar", None)?, EagerRules::default())?;
    let job = Job { budgets: Budgets { memory, ..Budgets::default() }, ..Job::plain(&graph, 32) };
    Ok(simulate(&machine, &job, &mut FarthestFirst)?)
}

#[allow(dead_code, reason = "a test takes this file in as a module")]
fn main() -> Result<(), Box<dyn Error>> {
    let peak = run(None)?.peak_memory;
    let record = run(Some(Bytes(peak.0 / 100 * 60)))?;
    println!("{peak} became {}; {} operators ran again", record.peak_memory, record.recomputed);
    Ok(())
}
