//! The figures of a run as its JSON and a sweep's table name them.

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

/// A run that ended, of which figures are.
struct Ended<'a> {
    plan: &'a Plan,
    record: &'a Record,
    /// Zeros where the run was on no phone in use.
    phone: PhoneReport,
    /// A time that no plan beats which is as faithful.
    bound: Option<f64>,
}

impl Ended<'_> {
    fn covered(&self) -> Option<&Covered> {
        self.plan.resolved.covered.as_ref()
    }
}

/// Declares every figure once: its name, its type, and what it is of `run`.
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
    /// The whole iteration; with the times, the energy and their parts below the mean of the iterations after the first.
    iteration_time_s: f64 = seconds(run.record.iteration);
    /// From the samples to the loss.
    forward_s: f64 = seconds(run.record.forward);
    /// From the loss to the gradients.
    backward_s: f64 = seconds(run.record.backward);
    /// The update of the weights.
    update_s: f64 = seconds(run.record.update);
    /// Samples a second.
    samples_per_s: f64 = run.record.samples_per_second();
    /// The most that is resident.
    peak_memory_bytes: u64 = run.record.peak_memory.0;
    /// The same above what is resident before forward.
    peak_growth_bytes: u64 = run.record.peak_growth.0;
    /// The most that is held from the system: by the allocator, and by an arena.
    reserved_bytes: u64 = run.record.reserved.0;
    /// Whether what is resident is more at its peak than the device's system leaves, which only a run may take that ignores it.
    #[serde(default)]
    exceeds_ram: bool = run.plan.exceeds_ram(run.plan.footprint(run.record));
    /// The most that saved tensors take, in the form in which they are stored.
    saved_peak_bytes: u64 = run.record.peak_saved.0;
    /// The most that is in flight to and from a CPU that packs.
    staging_bytes: u64 = run.record.peak_staging.0;
    /// Bytes of the arena that hold nothing, when it is fullest.
    fragmentation_bytes: u64 = run.record.arena.map_or(0, |arena| arena.reserved.0.saturating_sub(arena.stored.0));
    /// The mean of all iterations of the run.
    mean_iteration_s: f64 = seconds(run.record.iterations.iter().copied().sum()) / run.record.iterations.len().max(1) as f64;
    /// Half of the width of the interval in which the mean of the iterations after the first is with 95%; `None` below three.
    iteration_spread: Option<f64> = spread(&run.record.iterations);
    /// Every iteration of the run.
    iterations_s: Vec<f64> = run.record.iterations.iter().copied().map(seconds).collect();
    /// How long the run went on after the end of the trace of a user, whose last values were held; zero without one.
    trace_held_s: f64 = run.covered().map_or(0.0, |covered| seconds(covered.held(run.record.ended)));
    /// Of what apps did during the run by their trace, the share that it does not tell and that was assumed; `None` without
    /// one, or where they did nothing.
    trace_assumed_share: Option<f64> = run.covered().and_then(|covered| covered.assumed_share(run.record.ended));
    /// Of all iterations, what the thread that trains slept for pages from flash; zero without a phone in use.
    uninterruptible_s: f64 = seconds(run.phone.run.states.sleeping);
    /// Of all iterations, what it was ready and not on a core.
    runnable_s: f64 = seconds(run.phone.run.states.runnable);
    /// The mean of all memory in use on the phone.
    system_used_bytes: u64 = run.phone.run.used_mean.0;
    /// What its kernel has evicted.
    evicted_bytes: u64 = pages(run.phone.run.evicted());
    /// What faults have read from flash.
    flash_read_bytes: u64 = pages(run.phone.run.read_from_flash());
    /// What the run writes to flash: swapped tensors, and what the kernel of a phone in use evicts to it.
    flash_written_bytes: u64 = run.record.flash_written.0 + pages(run.phone.run.written_to_flash());
    /// How often the low-memory killer has ended the process that trains.
    kills: u64 = run.phone.kills.len() as u64;
    /// How often it has ended apps.
    apps_killed: u64 = run.phone.apps_killed;
    /// What the kernel of a phone in use saw; `None` on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone: Option<PhoneResults> = PhoneResults::of(run.record);
    /// Energy of the iteration.
    energy_j: f64 = run.record.energy.0;
    /// The mean power of the iteration, above the idle device.
    mean_power_w: f64 = run.record.energy.0 / seconds(run.record.iteration).max(f64::MIN_POSITIVE);
    /// What the process holds beside tensors: the context of a GPU, libraries, an interpreter.
    process_bytes: u64 = run.plan.resolved.stack.process().0;
    /// Seconds of the process on cores in a second, spinning or at work.
    busy_cores: f64 = run.record.threads.all / seconds(run.record.iteration).max(f64::MIN_POSITIVE);
    /// What of these the system's kernel takes.
    kernel_share: f64 = run.record.threads.kernel / run.record.threads.all.max(f64::MIN_POSITIVE);
    /// Pages that the iteration touches for the first time.
    minor_faults: u64 = run.record.minor_faults;
    /// The share of the time spent computing again.
    recompute_share: f64 = run.record.recompute_share();
    /// How faithful the gradients are.
    #[serde(default)]
    fidelity: FidelityClass = run.record.fidelity.class();
    /// Gradients of weights that are not computed.
    #[serde(default)]
    gradients_given_up: u64 = run.record.fidelity.gradients_given_up;
    /// The fewest bits a value with which backward finds a saved tensor.
    #[serde(default)]
    least_bits: u64 = run.record.fidelity.least_bits.into();
    /// Whose statistics batch normalisations take: `part` where each micro-batch its own, else `whole`.
    #[serde(default)]
    batch_statistics: BatchStatistics = run.record.fidelity.batch_statistics.unwrap_or(BatchStatistics::Whole);
    /// A time that no plan beats which is as faithful, and keeps off flash if this run does; `None` of
    /// integers and where gradients are given up.
    #[serde(default)]
    lower_bound_s: Option<f64> = run.bound;
    /// How much longer the run takes, as a share of that.
    #[serde(default)]
    optimality_gap: Option<f64> = run.bound.map(|bound| seconds(run.record.iteration) / bound - 1.0);
    /// Samples of each micro-batch.
    micro_batches: Vec<u64> = run.record.micro_batches.clone();
    /// Seconds by part, in the order of [`Results::parts`].
    breakdown: Vec<f64> = run.record.breakdown.parts().into_iter().map(|(_, time)| seconds(time)).collect();
    /// Shares of the iteration by what bounds them, in the order of [`Results::bounds`]; they sum to one.
    bound_by: Vec<f64> = run.record.bound_by.parts().map(|(_, time)| share(time, run.record.iteration)).to_vec();
}

impl Results {
    /// The figures of `record`, a run of `plan`.
    pub fn new(plan: &Plan, record: &Record) -> Self {
        let bound = plan.least_time(record).map(seconds).filter(|bound| *bound > 0.0);
        Self::of(&Ended { plan, record, phone: record.phone.clone().unwrap_or_default(), bound })
    }

    /// What is given up of the gradients, a number a kind: see [`Fidelity::losses`].
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

    /// Figures of nothing, which have every name.
    pub(crate) fn zero() -> Self {
        let (breakdown, bound_by) = (vec![0.0; Self::parts().len()], vec![0.0; Self::bounds().len()]);
        Self { breakdown, bound_by, ..Self::default() }
    }

    /// The names of the breakdown's parts, in order.
    pub fn parts() -> Vec<&'static str> {
        Breakdown::default().parts().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of what can bound a time, in order.
    pub fn bounds() -> [&'static str; 8] {
        BoundBy::default().parts().map(|(name, _)| name)
    }

    /// The figures as the JSON of `haversack simulate`.
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

/// Whole nanoseconds over a power of ten: the nearest float, which prints as short as it can.
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

/// The share of `whole` that `part` is; zero of nothing.
pub fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / (whole.0 as f64).max(1.0)
}

/// What was seen in all iterations together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct PhoneResults {
    /// Time in which somebody stalled for want of memory (`/proc/pressure/memory`).
    pub psi_some_s: f64,
    /// Time in which somebody stalled and nobody worked.
    pub psi_full_s: f64,
    /// The mean of what could not be had: `MemTotal` less `MemAvailable`.
    pub unavailable_bytes: u64,
    /// Counters of `/proc/vmstat` by name, in pages of 4 KiB.
    pub vmstat: Vec<(String, u64)>,
    /// Stalls of the process that trains.
    pub trainer_stalls: StallResults,
    /// Stalls of the system's own processes.
    pub system_stalls: StallResults,
    /// Stalls of apps.
    pub app_stalls: StallResults,
    /// Apps that came to the front, until their pages were in.
    pub launches: StallResults,
    /// Every time that the process that trains was ended.
    pub killed: Vec<KillResults>,
    /// The memory budgets that were planned, in their order.
    pub planned_budgets_bytes: Vec<u64>,
}

/// How often somebody waited, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallResults {
    /// How often.
    pub count: u64,
    /// All together.
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
    /// The mean; zero of none.
    pub fn mean_s(&self) -> f64 {
        self.total_s / self.count.max(1) as f64
    }
}

/// A kill of the process that trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KillResults {
    /// When, from the start of the run.
    pub at_s: f64,
    /// The iteration under way, from one.
    pub iteration: u64,
    /// Why, in the words of the low-memory killer.
    pub reason: String,
    /// The score of what was ended, and the least that might be.
    pub adj: i32,
    /// See `adj`.
    pub min_adj: i32,
    /// The work that was lost.
    pub lost_s: f64,
}

impl PhoneResults {
    /// Of `record`; `None` if it is of no phone in use.
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
