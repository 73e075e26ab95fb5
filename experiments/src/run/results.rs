//! The results of a run, with the names used in JSON and in a sweep's table.

use haversack_devices::Nanos;
use haversack_memory::phone::PAGE;
use haversack_policies::BatchStatistics;
use haversack_training::{BoundBy, Breakdown, Fidelity, FidelityClass, PhoneReport, Record, Stalls};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

use super::Plan;
use crate::scenario::Covered;

/// A run that ended, from which results are computed.
struct Ended<'a> {
    plan: &'a Plan,
    record: &'a Record,
    /// Zeros unless the run was on a phone in use.
    phone: PhoneReport,
    /// A lower bound on the time of equally faithful plans, in seconds.
    bound: Option<f64>,
}

impl Ended<'_> {
    fn covered(&self) -> Option<&Covered> {
        self.plan.resolved.covered.as_ref()
    }
}

/// Declares every figure once: its name, its type, and its value for `run`.
macro_rules! figures {
    ($run:ident; $($(#[$meta:meta])* $name:ident: $type:ty = $value:expr;)+) => {
        /// The figures of a run, in seconds, bytes and joules.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[must_use]
        pub struct Results {
            $($(#[$meta])* pub $name: $type,)+
        }

        impl Results {
            fn of($run: &Ended<'_>) -> Self {
                Self { $($name: $value,)+ }
            }
        }
    };
}

figures! {
    run;
    /// The whole iteration. This time, the times and energies below and their parts are means over the
    /// iterations after the first.
    iteration_time_s: f64 = seconds(run.record.iteration);
    /// From the samples to the loss.
    forward_s: f64 = seconds(run.record.forward);
    /// From the loss to the gradients.
    backward_s: f64 = seconds(run.record.backward);
    /// The update of the weights.
    update_s: f64 = seconds(run.record.update);
    /// Samples per second.
    samples_per_s: f64 = run.record.samples_per_second();
    /// The peak of resident memory.
    peak_memory_bytes: u64 = run.record.peak_memory.0;
    /// The same above the memory resident before forward.
    peak_growth_bytes: u64 = run.record.peak_growth.0;
    /// The peak of memory reserved from the system, by the allocator and by an arena.
    reserved_bytes: u64 = run.record.reserved.0;
    /// Whether the resident peak exceeds the memory that the device's system leaves, which is possible only if the run
    /// ignores that limit.
    #[serde(default)]
    exceeds_ram: bool = run.plan.exceeds_ram(run.plan.footprint(run.record));
    /// The peak of saved tensors, in the form in which they are stored.
    saved_peak_bytes: u64 = run.record.peak_saved.0;
    /// The peak of data in flight to and from a CPU that packs.
    staging_bytes: u64 = run.record.peak_staging.0;
    /// Unused bytes of the arena when it is fullest.
    fragmentation_bytes: u64 = run.record.arena.map_or(0, |arena| arena.reserved.0.saturating_sub(arena.stored.0));
    /// The mean of all iterations of the run.
    mean_iteration_s: f64 = seconds(run.record.iterations.iter().copied().sum()) / run.record.iterations.len().max(1) as f64;
    /// Half of the width of the 95% confidence interval of the mean of the iterations after the first; `None` for fewer
    /// than three iterations.
    iteration_spread: Option<f64> = spread(&run.record.iterations);
    /// Every iteration of the run.
    iterations_s: Vec<f64> = run.record.iterations.iter().copied().map(seconds).collect();
    /// How long the run continued after the end of a user's trace, with its last values; zero without a trace.
    trace_held_s: f64 = run.covered().map_or(0.0, |covered| seconds(covered.held(run.record.ended)));
    /// The fraction of app events during the run that are missing from the trace and were assumed; `None` without a
    /// trace, or without events.
    trace_assumed_share: Option<f64> = run.covered().and_then(|covered| covered.assumed_share(run.record.ended));
    /// Total time that the training thread slept waiting for pages from flash, over all iterations; zero unless
    /// on a phone in use.
    uninterruptible_s: f64 = seconds(run.phone.run.states.sleeping);
    /// Total time that the thread was runnable but not running, over all iterations.
    runnable_s: f64 = seconds(run.phone.run.states.runnable);
    /// The mean of all memory in use on the phone.
    system_used_bytes: u64 = run.phone.run.used_mean.0;
    /// Bytes evicted by its kernel.
    evicted_bytes: u64 = pages(run.phone.run.evicted());
    /// Bytes that faults read from flash.
    flash_read_bytes: u64 = pages(run.phone.run.read_from_flash());
    /// Bytes that the run writes to flash: swapped tensors, and pages evicted by the kernel of a phone in use.
    flash_written_bytes: u64 = run.record.flash_written.0 + pages(run.phone.run.written_to_flash());
    /// The number of times that the low-memory killer ended the training process.
    kills: u64 = run.phone.kills.len() as u64;
    /// The number of times that it ended apps.
    apps_killed: u64 = run.phone.apps_killed;
    /// Statistics of the kernel of a phone in use; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone: Option<PhoneResults> = PhoneResults::of(run.record);
    /// Energy of the iteration.
    energy_j: f64 = run.record.energy.0;
    /// The mean power of the iteration, above the idle device.
    mean_power_w: f64 = run.record.energy.0 / seconds(run.record.iteration).max(f64::MIN_POSITIVE);
    /// The memory of the process besides tensors: the context of a GPU, libraries, an interpreter.
    process_bytes: u64 = run.plan.resolved.stack.process().0;
    /// Core-seconds of the process per second, spinning or working.
    busy_cores: f64 = run.record.threads.all / seconds(run.record.iteration).max(f64::MIN_POSITIVE);
    /// The fraction of these spent in the system's kernel.
    kernel_share: f64 = run.record.threads.kernel / run.record.threads.all.max(f64::MIN_POSITIVE);
    /// Pages that the iteration touches for the first time.
    minor_faults: u64 = run.record.minor_faults;
    /// The fraction of the time spent on recomputation.
    recompute_share: f64 = run.record.recompute_share();
    /// How faithful the gradients are.
    #[serde(default)]
    fidelity: FidelityClass = run.record.fidelity.class();
    /// The number of weight gradients that are not computed.
    #[serde(default)]
    gradients_given_up: u64 = run.record.fidelity.gradients_given_up;
    /// The fewest bits per value of any saved tensor that backward reads.
    #[serde(default)]
    least_bits: u64 = run.record.fidelity.least_bits.into();
    /// The statistics that batch normalisation uses: `part` if each micro-batch its own, otherwise `whole`.
    #[serde(default)]
    batch_statistics: BatchStatistics = run.record.fidelity.batch_statistics.unwrap_or(BatchStatistics::Whole);
    /// A lower bound on the time of plans that are equally faithful, and that do not use flash if this run does not;
    /// `None` for integers and where gradients are given up.
    #[serde(default)]
    lower_bound_s: Option<f64> = run.bound;
    /// How much longer the run takes, as a fraction of that bound.
    #[serde(default)]
    optimality_gap: Option<f64> = run.bound.map(|bound| seconds(run.record.iteration) / bound - 1.0);
    /// Samples of each micro-batch.
    micro_batches: Vec<u64> = run.record.micro_batches.clone();
    /// Seconds by part, in the order of [`Results::parts`].
    breakdown: Vec<f64> = run.record.breakdown.parts().into_iter().map(|(_, time)| seconds(time)).collect();
    /// Fractions of the iteration by the resource that bounds them, in the order of
    /// [`Results::bounds`]; they sum to one.
    bound_by: Vec<f64> = run.record.bound_by.parts().map(|(_, time)| share(time, run.record.iteration)).to_vec();
}

impl Results {
    /// The figures of `record`, a run of `plan`.
    pub fn new(plan: &Plan, record: &Record) -> Self {
        let bound = plan.least_time(record).map(seconds).filter(|bound| *bound > 0.0);
        Self::of(&Ended { plan, record, phone: record.phone.clone().unwrap_or_default(), bound })
    }

    /// The losses in the gradients, one number per kind: see [`Fidelity::losses`].
    pub fn losses(&self) -> [u64; 4] {
        let is_of_parts =
            self.batch_statistics == BatchStatistics::Part || self.fidelity == FidelityClass::BatchStatistics;
        let fidelity = Fidelity {
            gradients_given_up: self.gradients_given_up,
            least_bits: u8::try_from(self.least_bits).unwrap_or(u8::MAX),
            batch_statistics: is_of_parts.then_some(self.batch_statistics),
            integer: self.fidelity == FidelityClass::Integer,
        };
        fidelity.losses()
    }

    /// Results of zero, with every name.
    pub(crate) fn zero() -> Self {
        let (breakdown, bound_by) = (vec![0.0; Self::parts().len()], vec![0.0; Self::bounds().len()]);
        Self { breakdown, bound_by, ..Self::default() }
    }

    /// The names of the breakdown's parts, in order.
    pub fn parts() -> Vec<&'static str> {
        Breakdown::default().parts().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of everything that can bound a time, in order.
    pub fn bounds() -> [&'static str; 8] {
        BoundBy::default().parts().map(|(name, _)| name)
    }

    /// The results as the JSON of `haversack simulate`.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map: Map<String, Value> =
            serde_json::to_value(self).and_then(serde_json::from_value).unwrap_or_default();
        let object = |names: &[&str], values: &[f64]| {
            let pairs = names.iter().zip(values);
            Value::Object(pairs.map(|(&name, value)| (name.to_owned(), json!(value))).collect())
        };
        if let (Some(phone), Some(Value::Object(shown))) = (&self.phone, map.get_mut("phone")) {
            let counters = phone.vmstat.iter().map(|(name, count)| (name.clone(), json!(count)));
            shown.insert("vmstat".to_owned(), Value::Object(counters.collect()));
        }
        map.insert("breakdown".to_owned(), object(&Self::parts(), &self.breakdown));
        map.insert("bound_by".to_owned(), object(&Self::bounds(), &self.bound_by));
        map
    }
}

/// The bytes of pages.
const fn pages(pages: u64) -> u64 {
    pages * PAGE
}

/// Nanoseconds divided by a power of ten: the nearest float, which prints with the fewest digits.
fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// Half of the width of a 95% interval of the mean of `iterations` after the first (Student's t).
fn spread(iterations: &[Nanos]) -> Option<f64> {
    let later: Vec<f64> = iterations.get(1..)?.iter().copied().map(seconds).collect();
    let freedom = (later.len().checked_sub(1)).filter(|_| iterations.len() >= 3)? as f64;
    let wide = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some(wide * later.as_slice().std_dev() / (later.len() as f64).sqrt())
}

/// `part` as a fraction of `whole`; zero if `whole` is zero.
pub fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / (whole.0 as f64).max(1.0)
}

/// Statistics over all iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct PhoneResults {
    /// Time in which some task stalled on memory (`/proc/pressure/memory`).
    pub psi_some_s: f64,
    /// Time in which some task stalled and no task worked.
    pub psi_full_s: f64,
    /// The mean of the memory that was not available: `MemTotal` less `MemAvailable`.
    pub unavailable_bytes: u64,
    /// Counters of `/proc/vmstat` by name, in pages of 4 KiB.
    pub vmstat: Vec<(String, u64)>,
    /// Stalls of the training process.
    pub trainer_stalls: StallResults,
    /// Stalls of the system's own processes.
    pub system_stalls: StallResults,
    /// Stalls of apps.
    pub app_stalls: StallResults,
    /// Launches of apps to the foreground, until their pages were in memory.
    pub launches: StallResults,
    /// Every kill of the training process.
    pub killed: Vec<KillResults>,
    /// The memory budgets that plans were made for, in order.
    pub planned_budgets_bytes: Vec<u64>,
}

/// The number and the duration of stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallResults {
    /// Their number.
    pub count: u64,
    /// Their total duration.
    pub total_s: f64,
    /// The longest.
    pub longest_s: f64,
}

impl From<Stalls> for StallResults {
    fn from(stalls: Stalls) -> Self {
        Self { count: stalls.count, total_s: stalls.total.seconds(), longest_s: stalls.longest.seconds() }
    }
}

impl StallResults {
    /// The mean; zero if there are none.
    pub fn mean_s(&self) -> f64 {
        self.total_s / self.count.max(1) as f64
    }
}

/// A kill of the training process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KillResults {
    /// The time since the start of the run.
    pub at_s: f64,
    /// The iteration in progress, from one.
    pub iteration: u64,
    /// The low-memory killer's reason.
    pub reason: String,
    /// The score of the killed process, and the least score that could be killed.
    pub adj: i32,
    /// See `adj`.
    pub min_adj: i32,
    /// The lost work.
    pub lost_s: f64,
}

impl PhoneResults {
    /// The statistics of `record`; `None` if it is not of a phone in use.
    pub fn of(record: &Record) -> Option<Self> {
        let PhoneReport { run, kills, .. } = record.phone.as_ref()?;
        let kill = |kill: &haversack_training::TrainerKill| KillResults {
            at_s: kill.kill.at.seconds(),
            iteration: u64::from(kill.iteration) + 1,
            reason: kill.kill.reason.name().to_owned(),
            adj: kill.kill.adj,
            min_adj: kill.kill.min_adj,
            lost_s: kill.lost.seconds(),
        };
        Some(Self {
            psi_some_s: run.pressure.some.seconds(),
            psi_full_s: run.pressure.full.seconds(),
            unavailable_bytes: run.unavailable_mean.0,
            vmstat: run.counters.each().map(|(name, count)| (name.to_owned(), count)).collect(),
            trainer_stalls: run.trainer.into(),
            system_stalls: run.system.into(),
            app_stalls: run.apps.into(),
            launches: run.launches.into(),
            killed: kills.iter().map(kill).collect(),
            planned_budgets_bytes: record.planned.iter().map(|budget| budget.0).collect(),
        })
    }
}
