//! The offline profile of DAF's section 3.2.2: times of every strategy, block size and grid for a reduction of a given
//! size on a given device, and the fastest of them.

use haversack_devices::{Device, Fraction, Gpu, KernelTime, ProgramCounts, StackOnGpu};

use crate::counts::counts_of;
use crate::machine::Machine;
use crate::plan::{Grid, NAME, Plan, Strategy, Update};
use haversack_kernels::{KernelError, Statistic};

/// The statistics of a tensor that dynamic quantisation needs: the extrema for a scale, and a magnitude
/// for the tensor's importance.
pub const CONTROL: [Statistic; 3] = [Statistic::Minimum, Statistic::Maximum, Statistic::SumOfSquares];

/// The variants that the profiler tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Strategies.
    pub strategies: Vec<Strategy>,
    /// Ways of updating atomically.
    pub updates: Vec<Update>,
    /// Threads of a block. Sizes that do not fit the GPU are left out; if none fits, the largest possible size is
    /// tried.
    pub threads: Vec<u32>,
    /// Elements per thread in a tile, for the strategies that stride over the tensor.
    pub items: Vec<u32>,
    /// Grids, for the strategies that end atomically.
    pub grids: Vec<Grid>,
}

impl Default for Search {
    /// Everything that the paper describes, thus without native atomics, since floats have no native atomic extremum.
    fn default() -> Self {
        Self {
            strategies: Strategy::ALL.to_vec(),
            updates: vec![Update::Unconditional, Update::Tested],
            threads: vec![64, 128, 256, 512, 1024],
            items: vec![1, 4, 16],
            grids: vec![Grid::Whole, Grid::Resident(1), Grid::PerUnit(1)],
        }
    }
}

/// Where the reduction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// In its own kernels.
    Own,
    /// As the epilogue of the kernel that computes the tensor.
    Epilogue {
        /// Elements per thread of that kernel.
        outputs: u32,
    },
}

/// A plan, with its counts and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The plan.
    pub plan: Plan,
    /// Its counts.
    pub counts: ProgramCounts,
    /// Its time.
    pub time: KernelTime,
}

/// Profiles a GPU.
#[derive(Clone, Debug)]
pub struct Profiler {
    /// The GPU, which turns counts into time.
    pub gpu: Gpu,
    /// The same GPU, as the machine that counts refer to.
    pub machine: Machine,
    /// The software stack: its overhead per operator, its factor per launch.
    pub stack: Option<StackOnGpu>,
    /// The variants to try.
    pub search: Search,
}

impl Profiler {
    /// A profiler for the device's GPU, if it has one, that tries all variants.
    pub fn of(device: &Device) -> Option<Self> {
        let (gpu, machine) = (device.gpu()?, Machine::of_device(device)?);
        Some(Self { gpu, machine, stack: None, search: Search::default() })
    }

    /// The epilogue of the stack's kernels, with as many elements per thread as they compute outputs.
    pub fn epilogue(&self) -> Setting {
        let outputs = self.stack.as_ref().map_or(1.0, |stack| stack.outputs_per_thread.value.0);
        Setting::Epilogue { outputs: outputs.max(1.0) as u32 }
    }

    /// The plans of the search that the machine can run.
    pub fn plans(&self, setting: Setting) -> Vec<Plan> {
        let most = self.machine.limits.threads.max(1);
        let mut threads: Vec<u32> = self.search.threads.iter().copied().filter(|&threads| threads <= most).collect();
        if threads.is_empty() {
            threads.push(1 << most.ilog2());
        }
        let mut plans = Vec::new();
        for &strategy in &self.search.strategies {
            for &threads in &threads {
                for &update in &self.search.updates {
                    let plan = Plan::new(strategy, threads).with_update(update);
                    match setting {
                        Setting::Epilogue { outputs } if strategy.ends_atomically() => {
                            plans.push(Plan::epilogue(strategy, threads, outputs).with_update(update));
                        }
                        Setting::Epilogue { .. } => {}
                        Setting::Own => plans.extend(self.variants(plan)),
                    }
                }
            }
        }
        plans.sort_unstable();
        plans.dedup();
        plans
    }

    /// The plan with every grid and tile that suits its strategy.
    fn variants(&self, plan: Plan) -> Vec<Plan> {
        match plan.strategy {
            // Without atomics all updates are equivalent.
            Strategy::Tree | Strategy::TwoPass => vec![plan.with_update(Update::default())],
            Strategy::Atomic => vec![plan],
            Strategy::Hybrid | Strategy::ThreadThenBlock => {
                let of_items = |&items| self.search.grids.iter().map(move |&grid| Plan { items, grid, ..plan });
                self.search.items.iter().flat_map(of_items).collect()
            }
        }
    }

    /// All plans with their times, the fastest first; equal ones in the order of [`Plan`].
    pub fn table(&self, statistics: &[Statistic], elements: u64, setting: Setting) -> Vec<Timed> {
        let time = |plan| self.time(plan, statistics, elements).ok();
        let mut table: Vec<Timed> = self.plans(setting).into_iter().filter_map(time).collect();
        table.sort_by_key(|timed| timed.time.total());
        table
    }

    /// One plan with its time.
    ///
    /// # Errors
    /// A plan that does not fit the machine: see [`Plan::passes`].
    pub fn time(&self, plan: Plan, statistics: &[Statistic], elements: u64) -> Result<Timed, KernelError> {
        let counts = counts_of(&plan, statistics, elements, &self.machine)?;
        let time = self.time_of(&counts);
        Ok(Timed { plan, counts, time })
    }

    /// The fastest plan for `elements` elements.
    ///
    /// # Errors
    /// No plan of the search runs on this machine.
    pub fn fastest(&self, statistics: &[Statistic], elements: u64, setting: Setting) -> Result<Timed, KernelError> {
        let none =
            || KernelError::Launch { kernel: NAME, reason: "no strategy of the search fits this GPU".to_owned() };
        self.table(statistics, elements, setting).into_iter().next().ok_or_else(none)
    }

    /// The time of counted kernels on this GPU under the stack.
    pub fn time_of(&self, counts: &ProgramCounts) -> KernelTime {
        self.gpu.time_of(counts, self.stack.as_ref())
    }

    /// The share of operations whose reduction is faster with `strategy` than with `other`, each with its better
    /// update.
    ///
    /// An operation is a kernel that computes `elements` elements, `outputs` per thread, with each block size of the
    /// search; the reduction is its epilogue. According to section 3.2.2, thread-level atomics win about 15% of
    /// operations on mobile GPUs.
    ///
    /// # Errors
    /// A plan that does not fit the machine.
    pub fn share_won(
        &self,
        strategy: Strategy,
        other: Strategy,
        statistics: &[Statistic],
        elements: &[u64],
        outputs: &[u32],
    ) -> Result<Fraction, KernelError> {
        let (mut won, mut operations) = (0_u32, 0_u32);
        let searching = |strategy, threads| {
            let search = Search { strategies: vec![strategy], threads: vec![threads], ..self.search.clone() };
            Self { search, ..self.clone() }
        };
        for &threads in self.search.threads.iter().filter(|&&threads| threads <= self.machine.limits.threads) {
            let profilers = [searching(strategy, threads), searching(other, threads)];
            for &elements in elements {
                for &outputs in outputs {
                    let setting = Setting::Epilogue { outputs };
                    let [first, second] = &profilers;
                    let first = first.fastest(statistics, elements, setting)?.time.busy;
                    won += u32::from(first < second.fastest(statistics, elements, setting)?.time.busy);
                    operations += 1;
                }
            }
        }
        Ok(Fraction(f64::from(won) / f64::from(operations.max(1))))
    }
}

/// A GPU of a hypothetical number of units.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// Units.
    pub units: u32,
    /// The plans with their times, in the order given.
    pub timed: Vec<Timed>,
}

/// The times of the same plans on `device` with more and more units and otherwise unchanged. According to section
/// 3.2.2, block-level atomics pay on the 8 units of a Jetson AGX Xavier and not on the 82 of an RTX 3090, where more
/// resident blocks contend; [`block_against_passes`] gives the plans to compare.
///
/// # Errors
/// A device without a GPU, an impossible number of units, or a plan that does not fit.
pub fn over_units(
    device: &Device,
    units: &[u32],
    plans: &[Plan],
    statistics: &[Statistic],
    elements: u64,
) -> Result<Vec<Scaled>, KernelError> {
    let refuse = |reason: String| KernelError::Launch { kernel: NAME, reason };
    let scaled = |&units: &u32| {
        let mut device = device.clone();
        device.set("gpu.units", f64::from(units)).map_err(|error| refuse(error.to_string()))?;
        let profiler = Profiler::of(&device).ok_or_else(|| refuse(format!("{} has no modelled GPU", device.id)))?;
        let timed = plans.iter().map(|plan| profiler.time(*plan, statistics, elements));
        Ok(Scaled { units, timed: timed.collect::<Result<_, _>>()? })
    };
    units.iter().map(scaled).collect()
}

/// Two reductions that differ only in how blocks combine: by an unconditional compare-and-swap of each (DAF's hybrid),
/// or in a second launch. The grid has as many blocks of `threads` threads as are resident.
pub fn block_against_passes(threads: u32) -> [Plan; 2] {
    let block = Plan::new(Strategy::Hybrid, threads);
    [block, Plan { strategy: Strategy::TwoPass, ..block }]
}
