//! `sage`, its two parts on their own (`dgc`, `dga`) and the other hybrids of figure 11 (Gim and Ko, MobiSys 2022,
//! section 3.4 and algorithm 1).
//!
//! Dynamic gradient accumulation drops the last samples' columns of everything in memory; dynamic gradient
//! checkpointing drops the tensor with the lowest latency per byte. Sage accumulates while the micro-batch is at least
//! MTP, the point below which the GPU is under-used, and checkpoints from there on. The comparison is with the
//! *current* part, whose last one may be small. As algorithm 1 is printed, accumulation never goes below MTP − 1;
//! `floor=1` lets it continue down to single samples when nothing is left to drop. An iteration begins with the
//! micro-batch that the one before it ended with, so that under a constant budget only the first one pays for finding
//! it.

use haversack_devices::Bytes;
use haversack_workloads::{Phase, TensorId};
use serde::Deserialize;

use crate::{
    BatchStatistics, IterationPlan, IterationSummary, MemoryView, Operations, Policy, PolicyError, Ranking, Relief,
    Schedule, Scored, Setting, TensorState, Want,
};

/// Where accumulation ends that comes before checkpointing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Floor {
    /// One sample below MTP (algorithm 1).
    #[default]
    Mtp,
    /// At single samples: once nothing is left to drop, the micro-batch shrinks further.
    #[serde(rename = "1")]
    OneSample,
}

/// Which of the two dynamic schemes gives way, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// `dgc`: only checkpointing.
    CheckpointingOnly,
    /// `dga`: only accumulation, down to single samples.
    AccumulationOnly,
    /// `sage`: accumulation down to MTP, then checkpointing.
    #[serde(rename = "dga-first")]
    AccumulationFirst,
    /// Checkpointing while there is something to drop, then accumulation.
    #[serde(rename = "dgc-first")]
    CheckpointingFirst,
    /// Each frees half of every shortfall.
    Half,
    /// They take turns.
    Alternate,
}

/// Dynamic checkpointing and accumulation, combined in some order.
#[derive(Clone, Debug)]
#[must_use]
pub struct Dynamic {
    order: Order,
    /// The micro-batch from which on accumulation costs nothing; `None` uses the device's.
    least_full: Option<u64>,
    mtp: u64,
    floor: Floor,
    checkpoint_next: bool,
    learned: Option<u64>,
    statistics: BatchStatistics,
    /// Tensors by latency per byte.
    ranking: Ranking<1>,
}

impl Dynamic {
    /// The schemes combined in `order`; `mtp` overrides the under-utilisation point of the device.
    pub fn new(order: Order, mtp: Option<u64>) -> Self {
        Self {
            order,
            least_full: mtp,
            mtp: 1,
            floor: Floor::default(),
            checkpoint_next: false,
            learned: None,
            statistics: BatchStatistics::Part,
            ranking: Ranking::default(),
        }
    }

    /// The same with another end of accumulation, in [`Order::AccumulationFirst`].
    pub fn down_to(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    /// The same with batches normalised by `statistics`.
    pub(crate) fn normalising_by(self, statistics: BatchStatistics) -> Self {
        Self { statistics, ..self }
    }

    /// Drops the tensors with the lowest latency per byte until `shortfall` is freed.
    fn checkpoint(&mut self, shortfall: Bytes, memory: &MemoryView<'_>) -> Vec<Relief> {
        let score = |tensor: TensorId| -latency_per_byte(&memory.tensors[tensor as usize]);
        self.ranking.evict(shortfall, memory, |&[score]| score, |tensor| Scored::At(score(tensor), [score(tensor)]))
    }

    /// Shrinks the micro-batch, by one sample at least, to the largest that fits but not below `least`.
    fn accumulate(memory: &MemoryView<'_>, least: u64) -> Vec<Relief> {
        let least = least.max(1);
        // The update does not belong to a micro-batch.
        if memory.micro_batch <= least || memory.phase == Phase::Update {
            return Vec::new();
        }
        let samples = memory.fitting_micro_batch(least).min(memory.micro_batch - 1);
        vec![Relief::ShrinkMicroBatch(samples)]
    }

    fn or_else(first: Vec<Relief>, second: impl FnOnce() -> Vec<Relief>) -> Vec<Relief> {
        if first.is_empty() { second() } else { first }
    }
}

fn latency_per_byte(tensor: &TensorState) -> f64 {
    tensor.cost.0 as f64 / tensor.bytes.as_f64().max(1.0)
}

impl Policy for Dynamic {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.mtp = self.least_full.unwrap_or(setting.filling_micro_batch);
        Ok(Schedule { batch_statistics: self.statistics, ..Schedule::plain(setting.batch) })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.checkpoint_next = false;
        plan.micro_batch = self.learned.unwrap_or(plan.micro_batch);
        Ok(())
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let shortfall = want.bytes();
        if self.order != Order::AccumulationOnly {
            self.ranking.refresh(memory, &[], |_, tensor| Some([-latency_per_byte(tensor)]));
        }
        Ok(match self.order {
            Order::CheckpointingOnly => self.checkpoint(shortfall, memory),
            Order::AccumulationOnly => Self::accumulate(memory, 1),
            Order::AccumulationFirst => {
                // Algorithm 1, line 10: while m ≥ MTP, so the smallest part is MTP − 1.
                let full = if memory.micro_batch >= self.mtp {
                    Self::accumulate(memory, self.mtp.saturating_sub(1))
                } else {
                    Vec::new()
                };
                let checkpointed = Self::or_else(full, || self.checkpoint(shortfall, memory));
                match self.floor {
                    Floor::Mtp => checkpointed,
                    Floor::OneSample => Self::or_else(checkpointed, || Self::accumulate(memory, 1)),
                }
            }
            Order::CheckpointingFirst => {
                Self::or_else(self.checkpoint(shortfall, memory), || Self::accumulate(memory, 1))
            }
            Order::Half => {
                let mut reliefs = self.checkpoint(Bytes(shortfall.0 / 2), memory);
                let share = shortfall.0.div_ceil(2).div_ceil(memory.needed.per_sample.max(1));
                let samples = memory.micro_batch.saturating_sub(share).max(1);
                if samples < memory.micro_batch && memory.phase != Phase::Update {
                    reliefs.push(Relief::ShrinkMicroBatch(samples));
                }
                Self::or_else(reliefs, || self.checkpoint(shortfall, memory))
            }
            Order::Alternate => {
                self.checkpoint_next = !self.checkpoint_next;
                if self.checkpoint_next {
                    Self::or_else(Self::accumulate(memory, 1), || self.checkpoint(shortfall, memory))
                } else {
                    Self::or_else(self.checkpoint(shortfall, memory), || Self::accumulate(memory, 1))
                }
            }
        })
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        // The last part may be small only because few samples were left.
        let whole = seen.micro_batches.split_last().map_or(&[][..], |(_, before)| before);
        self.learned = whole.iter().min().or(seen.micro_batches.first()).copied();
        Ok(Operations::default())
    }
}
