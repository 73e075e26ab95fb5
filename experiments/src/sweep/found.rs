//! The results of a sweep, gathered from its tables one after the other: the best of each policy, by device and model.
//!
//! Only memory, throughput and energy of each run are kept; a table is dropped once it has been read.
//!
//! Also one run of a sweep: its status, and its results.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use haversack_devices::Bytes;
use haversack_policies::{BatchStatistics, WHOLE};
use haversack_reports::table::three_digits;
use haversack_training::FidelityClass;
use polars::prelude::{DataFrame, PolarsResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::Specification;
use crate::run::{Outcome, Results, Status};
use crate::scenario::{BudgetBytes, Cell, workload};
use crate::{Cache, Key, Plan};

/// The results of a sweep.
#[derive(Default)]
pub(super) struct Found {
    /// The number of runs with each status, in the order of [`Status::VARIANTS`].
    pub(super) statuses: [u64; Status::VARIANTS.len()],
    pub(super) clouds: Vec<Cloud>,
    pub(super) names: HashSet<String>,
}

/// A kind of run: its settings, the class of its gradients, and the fewest bits.
type Kind = (Vec<String>, String, u64);

/// The results for a device and a model, which one picture shows.
pub(super) struct Cloud {
    pub(super) device: String,
    pub(super) model: String,
    /// The name of the picture's files, without their extension.
    pub(super) name: String,
    /// The values of each of [`SETTINGS`] in its runs.
    pub(super) settings: [BTreeSet<String>; SETTINGS.len()],
    /// The policies in the order of the runs.
    pub(super) policies: Vec<Reached>,
    /// Upper bounds on samples per second within a number of megabytes, for each kind of run.
    pub(super) bounds: BTreeMap<Kind, Vec<(f64, f64)>>,
}

/// Columns that a picture lists for its runs.
pub(super) const SETTINGS: [&str; 3] = [BATCH, "stack", "precision"];
/// The only one that is a number.
const BATCH: &str = "batch";

/// The results of a policy.
#[derive(Default)]
pub(super) struct Reached {
    pub(super) policy: String,
    pub(super) runs: u64,
    /// Memory in megabytes and samples per second of the runs that fit.
    pub(super) points: Vec<(f64, f64)>,
    /// Memory and joules per sample of those of them whose energy is known.
    pub(super) energies: Vec<(f64, f64)>,
    /// The fidelity of each: its class, and its losses.
    pub(super) fidelities: Vec<(FidelityClass, [u64; 4])>,
    /// The one with the most samples per second, the first of equals.
    pub(super) fastest: Option<Fastest>,
    /// The least memory with which a run worked, or that a run that did not fit would have needed.
    pub(super) least: Option<Bytes>,
}

/// The fastest run of a policy.
pub(super) struct Fastest {
    pub(super) samples_per_s: f64,
    pub(super) iteration_time_s: f64,
    pub(super) memory: Bytes,
}

impl Found {
    /// Adds the runs of `table`, which come after the earlier ones.
    ///
    /// # Errors
    /// A missing column, before any run is added.
    pub(super) fn see(&mut self, table: &DataFrame) -> PolarsResult<()> {
        let text = |name: &str| table.column(name)?.str();
        let whole = |name: &str| table.column(name)?.u64();
        let real = |name: &str| table.column(name)?.f64();
        let telling = [text("device")?, text("model")?, text("policy")?, text("status")?];
        // The device's changed constants, if the sweep changes any.
        let changes = text(Key::DeviceSet.name()).ok();
        let [_, stack, precision] = SETTINGS;
        let (batches, settings) = (whole(BATCH)?, [text(stack)?, text(precision)?]);
        let (energies, rates, times) = (real("energy_j")?, real("samples_per_s")?, real("iteration_time_s")?);
        let (memories, leasts) = (whole("peak_memory_bytes")?, whole("least_memory_bytes")?);
        let (classes, statistics) = (text("fidelity").ok(), text("batch_statistics").ok());
        let (bits, given_up) = (whole("least_bits").ok(), whole("gradients_given_up").ok());
        let (bounds, budgets) = (real("lower_bound_s").ok(), whole("memory_budget_bytes").ok());
        let faithful = |row: usize| {
            let results = Results {
                fidelity: classes.and_then(|texts| of_word(texts.get(row)?)).unwrap_or_default(),
                batch_statistics: statistics
                    .and_then(|texts| of_word(texts.get(row)?))
                    .unwrap_or(BatchStatistics::Whole),
                least_bits: bits.and_then(|numbers| numbers.get(row)).unwrap_or(WHOLE.into()),
                gradients_given_up: given_up.and_then(|numbers| numbers.get(row)).unwrap_or_default(),
                ..Results::default()
            };
            (results.fidelity, results.losses())
        };
        for row in 0..table.height() {
            let [Some(device), Some(model), Some(policy), Some(status)] = telling.map(|texts| texts.get(row)) else {
                continue;
            };
            let place = Status::VARIANTS.iter().position(|known| known.word() == status);
            place.and_then(|place| self.statuses.get_mut(place)).into_iter().for_each(|number| *number += 1);
            let changed = changes.and_then(|texts| texts.get(row));
            let device = changed.map_or(Cow::Borrowed(device), |changed| format!("{device} with {changed}").into());
            let batch = batches.get(row);
            let [stack, precision] = settings.map(|texts| texts.get(row).map(str::to_owned));
            let settings = [batch.map(|batch| batch.to_string()), stack, precision];
            let cloud = self.cloud(&device, model);
            if let (Some(batch), Some(bound)) = (batch, bounds.and_then(|bounds| bounds.get(row))) {
                let kind = settings.iter().flatten().cloned().collect();
                let class = classes.and_then(|texts| texts.get(row)).unwrap_or_default().to_owned();
                let bits = bits.and_then(|numbers| numbers.get(row)).unwrap_or_default();
                let within =
                    budgets.and_then(|budgets| budgets.get(row)).map_or(f64::INFINITY, |room| Bytes(room).megabytes());
                cloud.bounds.entry((kind, class, bits)).or_default().push((within, batch as f64 / bound));
            }
            for (known, setting) in cloud.settings.iter_mut().zip(settings) {
                known.extend(setting.filter(|_| status == Status::Ok.word()));
            }
            let reached = cloud.policy(policy);
            reached.runs += 1;
            let (memory, rate) = (memories.get(row).map(Bytes), rates.get(row));
            let mut least = leasts.get(row).map(Bytes);
            if let (true, Some(memory), Some(rate)) = (status == Status::Ok.word(), memory, rate) {
                reached.points.push((memory.megabytes(), rate));
                reached.fidelities.push(faithful(row));
                if let (Some(energy), Some(batch)) = (energies.get(row), batch) {
                    reached.energies.push((memory.megabytes(), energy / batch as f64));
                }
                least = Some(memory);
                if reached.fastest.as_ref().is_none_or(|fastest| rate > fastest.samples_per_s) {
                    let iteration_time_s = times.get(row).unwrap_or(f64::NAN);
                    reached.fastest = Some(Fastest { samples_per_s: rate, iteration_time_s, memory });
                }
            }
            reached.least = reached.least.into_iter().chain(least).min();
        }
        Ok(())
    }

    /// The results for a device and a model.
    pub(super) fn cloud(&mut self, device: &str, model: &str) -> &mut Cloud {
        let names = &mut self.names;
        place(
            &mut self.clouds,
            |cloud| cloud.device == device && cloud.model == model,
            || Cloud {
                device: device.to_owned(),
                model: model.to_owned(),
                name: file_name(device, model, names),
                settings: Default::default(),
                policies: Vec::new(),
                bounds: BTreeMap::new(),
            },
        )
    }
}

impl Cloud {
    /// The model's display name.
    pub(super) fn called(&self) -> &str {
        workload::called(&self.model)
    }

    /// "ResNet-18 on galaxy-s10".
    pub(super) fn title(&self) -> String {
        format!("{} on {}", self.called(), self.device)
    }

    /// The title of its picture: the most samples per second and the least memory among runs with the best gradients.
    pub(super) fn finding(&self) -> String {
        let (title, runs) = (self.title(), self.runs());
        let classes: BTreeSet<FidelityClass> = runs.iter().map(|(_, class, _)| *class).collect();
        let own = || runs.iter().filter(|(_, class, _)| Some(class) == classes.first());
        let most = own().max_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let (Some(most), Some(least)) = (most, own().min_by(|a, b| a.0.0.total_cmp(&b.0.0))) else {
            return format!("{title}: no run fits");
        };
        let with = if classes.len() > 1 { format!(" with {} gradients", most.1.word()) } else { String::new() };
        let (rate, memory) = (three_digits(most.0.1), three_digits(least.0.0));
        format!("{title}: {} trains up to {rate} samples/s{with}, {} needs only {memory} MB", most.2, least.2)
    }

    /// Memory and samples per second of each run that fits, with the class of its gradients and its policy.
    pub(super) fn runs(&self) -> Vec<((f64, f64), FidelityClass, &str)> {
        let mut runs = Vec::new();
        for reached in &self.policies {
            for (point, (class, _)) in reached.points.iter().zip(&reached.fidelities) {
                runs.push((*point, *class, &*reached.policy));
            }
        }
        runs
    }

    fn policy(&mut self, policy: &str) -> &mut Reached {
        let nothing = || Reached { policy: policy.to_owned(), ..Reached::default() };
        place(&mut self.policies, |reached| reached.policy == policy, nothing)
    }
}

/// The value that a word deserialises to.
fn of_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

/// The item for which `is_it` is true; if there is none, `make` adds it at the end.
fn place<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let found = items.iter().position(is_it).unwrap_or(items.len());
    if found == items.len() {
        items.push(make());
    }
    &mut items[found]
}

/// `pareto-<device>-<model>`, in characters that every file system accepts; names are unique.
fn file_name(device: &str, model: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let stem: String = format!("pareto-{device}-{}", workload::called(model)).chars().map(plain).take(120).collect();
    let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
    let free = std::iter::once(stem.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or(stem);
    taken.insert(name.clone());
    name
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Row {
    /// The number of the run, from zero.
    pub run: u64,
    /// The keys of its scenario with all defaults filled in; if its values do not fit together, the values given.
    pub scenario: Vec<(String, Cell)>,
    /// Whether there are results, and if not why.
    pub status: Status,
    /// The results, also of a run that exceeded its time budget.
    pub results: Option<Results>,
    /// The least memory budget that works, if this one does not.
    pub least_memory_bytes: Option<u64>,
    /// The reason, unless it is `ok`.
    pub reason: Option<String>,
}

impl Row {
    /// Runs the run numbered `run`; errors become part of the row.
    pub fn run(run: u64, specification: &Specification, cache: &Cache) -> Self {
        let asked = match specification.scenario(run) {
            Ok(asked) => asked,
            Err(error) => return Self::ended(run, Vec::new(), Outcome::refused(&error.into())),
        };
        let brought = specification.brought(run);
        match Plan::new(&asked, cache).map(|plan| brought.cloned().into_iter().fold(plan, Plan::under)) {
            Ok(plan) => Self::ended(run, plan.scenario().cells(plan.budget_bytes()), Outcome::of(&plan, cache)),
            Err(error) => {
                let mut scenario = asked.resolve_in(cache).map_or(asked, |resolved| resolved.scenario);
                brought.into_iter().for_each(|own| scenario.policy.clone_from(&own.name));
                Self::ended(run, scenario.cells(BudgetBytes::default()), Outcome::refused(&error))
            }
        }
    }

    fn ended(run: u64, cells: Vec<(&str, Cell)>, outcome: Outcome) -> Self {
        let scenario = cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect();
        let Outcome { status, results, least_memory, reason, .. } = outcome;
        Self { run, scenario, status, results, least_memory_bytes: least_memory.map(|bytes| bytes.0), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_never_the_same() {
        let mut taken = HashSet::new();
        assert_eq!(file_name("my/phone.toml", "a b", &mut taken), "pareto-my_phone.toml-a_b");
        assert_eq!(file_name("my_phone.toml", "a_b", &mut taken), "pareto-my_phone.toml-a_b-2");
        assert_eq!(file_name("pixel-6", "/tmp/one/net.onnx", &mut taken), "pareto-pixel-6-net");
        assert_eq!(file_name("pixel-6", "/tmp/two/net.onnx", &mut taken), "pareto-pixel-6-net-2");
    }
}
