//! The figures of a run as its JSON and a sweep's table name them.

use haversack_devices::units::Nanos;
use haversack_memory::phone::PAGE;
use haversack_training::{BoundBy, Breakdown, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{PhoneResults, Plan};

/// The figures of a run, in seconds, bytes and joules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Results {
    /// The whole iteration.
    pub iteration_time_s: f64,
    /// From the samples to the loss.
    pub forward_s: f64,
    /// From the loss to the gradients.
    pub backward_s: f64,
    /// The update of the weights.
    pub update_s: f64,
    /// Samples a second.
    pub samples_per_s: f64,
    /// The most that is resident.
    pub peak_memory_bytes: u64,
    /// The same above what is resident before forward.
    pub peak_growth_bytes: u64,
    /// The most that is held from the system: by the allocator, and by an arena.
    pub reserved_bytes: u64,
    /// Whether what is resident is more at its peak than the device's system leaves, which only a run may take that ignores it.
    #[serde(default)]
    pub exceeds_ram: bool,
    /// The most that saved tensors take, in the form in which they are stored.
    pub saved_peak_bytes: u64,
    /// The most that is in flight to and from a CPU that packs.
    pub staging_bytes: u64,
    /// Bytes of the arena that hold nothing, when it is fullest.
    pub fragmentation_bytes: u64,
    /// The mean of all iterations of the run.
    pub mean_iteration_s: f64,
    /// Every iteration of the run.
    pub iterations_s: Vec<f64>,
    /// How long the run went on after the end of the trace of a user, whose last values were held; zero without one.
    pub trace_held_s: f64,
    /// Of what apps did during the run by their trace, the share that it does not tell and that was assumed; `None` without
    /// one, or where they did nothing.
    pub trace_assumed_share: Option<f64>,
    /// Of all iterations, what the thread that trains slept for pages from flash; zero without a phone in use.
    pub uninterruptible_s: f64,
    /// Of all iterations, what it was ready and not on a core.
    pub runnable_s: f64,
    /// The mean of all memory in use on the phone.
    pub system_used_bytes: u64,
    /// What its kernel has evicted.
    pub evicted_bytes: u64,
    /// What faults have read from flash.
    pub flash_read_bytes: u64,
    /// How often the low-memory killer has ended the process that trains.
    pub kills: u64,
    /// How often it has ended apps.
    pub apps_killed: u64,
    /// What the kernel of a phone in use saw; `None` on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<PhoneResults>,
    /// Energy of the iteration.
    pub energy_j: f64,
    /// The share of the time spent computing again.
    pub recompute_share: f64,
    /// Samples of each micro-batch.
    pub micro_batches: Vec<u64>,
    /// Seconds by part, in the order of [`Results::parts`].
    pub breakdown: Vec<f64>,
    /// Shares of the iteration by what bounds them, in the order of [`Results::bounds`]; they sum to one.
    pub bound_by: Vec<f64>,
}

impl Results {
    /// The figures of `record`, a run of `plan`.
    pub fn new(plan: &Plan, record: &Record) -> Self {
        let covered = plan.resolved.covered.as_ref();
        let phone = record.phone.clone().unwrap_or_default();
        let pages = |pages: u64| pages * PAGE;
        let iterations = record.iterations.len().max(1) as f64;
        Self {
            iteration_time_s: seconds(record.iteration),
            forward_s: seconds(record.forward),
            backward_s: seconds(record.backward),
            update_s: seconds(record.update),
            samples_per_s: record.samples_per_second(),
            peak_memory_bytes: record.peak_memory.0,
            peak_growth_bytes: record.peak_growth.0,
            reserved_bytes: record.reserved.0,
            exceeds_ram: plan.exceeds_ram(record.peak_memory),
            saved_peak_bytes: record.peak_saved.0,
            staging_bytes: record.peak_staging.0,
            fragmentation_bytes: record.arena.map_or(0, |arena| arena.reserved.0.saturating_sub(arena.stored.0)),
            mean_iteration_s: seconds(record.iterations.iter().copied().sum()) / iterations,
            iterations_s: record.iterations.iter().copied().map(seconds).collect(),
            trace_held_s: covered.map_or(0.0, |covered| seconds(covered.held(record.ended))),
            trace_assumed_share: covered.and_then(|covered| covered.assumed_share(record.ended)),
            uninterruptible_s: seconds(phone.run.states.sleeping),
            runnable_s: seconds(phone.run.states.runnable),
            system_used_bytes: phone.run.used_mean.0,
            evicted_bytes: pages(phone.run.evicted()),
            flash_read_bytes: pages(phone.run.read_from_flash()),
            kills: phone.kills.len() as u64,
            apps_killed: phone.apps_killed,
            phone: PhoneResults::of(record),
            energy_j: record.energy.0,
            recompute_share: record.recompute_share(),
            micro_batches: record.micro_batches.clone(),
            breakdown: record.breakdown.parts().into_iter().map(|(_, time)| seconds(time)).collect(),
            bound_by: record.bound_by.parts().map(|(_, time)| share(time, record.iteration)).to_vec(),
        }
    }

    /// The names of the breakdown's parts, in order.
    pub fn parts() -> Vec<&'static str> {
        Breakdown::default().parts().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of what can bound a time, in order.
    pub fn bounds() -> [&'static str; 5] {
        BoundBy::default().parts().map(|(name, _)| name)
    }

    /// The figures as the JSON of `haversack simulate`.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
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

/// Whole nanoseconds over a power of ten: the nearest float, which prints as short as it can.
fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// The share of `whole` that `part` is; zero of nothing.
pub fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / (whole.0 as f64).max(1.0)
}
