//! The papers' observations that constants may be fitted to, with the readings declared for them.

use haversack_devices::{Bytes, Nanos};
use haversack_workloads::Variant;

use super::observation::{Calibration, Measure, Observation, Part};
use crate::artefacts::ARTEFACTS;
use crate::artefacts::daf::store;
use crate::artefacts::fedhybrid::figure2;
use crate::artefacts::mandheling::setting::timed;
use crate::artefacts::mandheling::{batches, operators, tables};
use crate::papers::readings::{Readings, Value};
use crate::papers::reference::{Reference, ReferenceRow, Role};
use crate::reproduce::{Artefact, Context, Kept};
use crate::scenario::World;
use crate::{Cache, CommandError, Plan, Result, Scenario};

const MANDHELING: &str = "mandheling";
const FEDHYBRID: &str = "fedhybrid";

/// A paper, with its readings.
struct Paper {
    id: &'static str,
    reference: Reference,
    readings: Readings,
    cache: Cache,
}

impl Paper {
    fn load(id: &'static str) -> Result<Self> {
        let reference = Reference::load().map_err(CommandError::failed)?;
        let readings = Readings::load(&reference).map_err(CommandError::failed)?;
        Ok(Self { id, reference, readings, cache: Cache::new() })
    }

    /// The rows of `artefact` that a constant may be fitted to, and their numbers.
    fn rows(&self, artefact: &str) -> impl Iterator<Item = (&ReferenceRow, f64)> {
        let fit = self.reference.of(self.id, artefact).filter(|row| row.role() == Role::Fit);
        fit.filter_map(|row| Some((row, row.number()?)))
    }

    /// The reading `id` of `artefact`.
    fn reading(&self, artefact: &str, id: &str) -> Result<&Value> {
        let found = self.readings.reading(self.id, artefact, id).map(|reading| &reading.value);
        found.ok_or_else(|| CommandError::failed(format!("{}/{artefact} declares no reading '{id}'", self.id)))
    }

    /// The number of the reading `id` of `artefact`.
    fn number(&self, artefact: &str, id: &str) -> Result<f64> {
        match self.reading(artefact, id)? {
            Value::Number(number) => Ok(*number),
            _ => Err(CommandError::failed(format!("{}/{artefact}: the reading '{id}' is not a number", self.id))),
        }
    }

    fn plan(&self, scenario: &Scenario) -> Result<Plan> {
        Ok(Plan::new(scenario, &self.cache)?)
    }
}

/// The latencies of the rows that may be fitted, with the readings declared for them.
pub(super) fn sage_table1(calibration: &Calibration) -> Result<Vec<Observation>> {
    let paper = Paper::load("sage")?;
    let batch = paper.number("table1", "latency-batch")? as u64;
    let rows = paper.rows("table1").filter(|(row, _)| row.metric == "latency");
    let mut observations = Vec::new();
    for (row, milliseconds) in rows {
        // The last optimisation of "direct+of+sr" is the one that includes the others.
        let last = row.method.rsplit('+').next();
        let variant = Variant::ALL.into_iter().find(|variant| Some(variant.id()) == last);
        let Some(variant) = variant else {
            return Err(CommandError::failed(format!("{}: not a latency under a variant of the graph", row.id)));
        };
        let mut scenario = calibration.scenario(&row.subject, batch);
        scenario.graph = Some(variant);
        let plan = paper.plan(&scenario)?;
        observations.push(Observation::time(&row.id, milliseconds * 1e-3, Part::Iteration, plan));
    }
    Ok(observations)
}

/// The times of the rows that may be fitted, with the readings declared for them; a time of zero does
/// not determine a rate.
pub(super) fn daf_table2() -> Result<Vec<Observation>> {
    let paper = Paper::load("daf")?;
    let mut observations = Vec::new();
    for (row, milliseconds) in paper.rows("table2").filter(|(_, milliseconds)| *milliseconds > 0.0) {
        let part = match row.metric.as_str() {
            "time" => Part::BesidePacking,
            "time-overhead" => Part::Packing,
            _ => continue,
        };
        let mut scenario =
            store::packed(|id| Ok(paper.number("table2", id)?), &row.method).map_err(CommandError::failed)?;
        // All iterations are equal: the policy learns nothing in the first.
        scenario.iterations = Some(1);
        let plan = paper.plan(&scenario)?;
        observations.push(Observation::time(&row.id, milliseconds * 1e-3, part, plan));
    }
    Ok(observations)
}

/// The plans whose mean time, or energy, is that of a batch in `scenario`.
fn plans(paper: &Paper, artefact: &str, scenario: &Scenario) -> Result<Vec<Plan>> {
    let warm_up = paper.number(artefact, "settled")? as u64;
    timed(scenario, warm_up).iter().map(|scenario| paper.plan(scenario)).collect()
}

/// The milliseconds computed by `simulated`, if it can run.
fn other(
    row: &ReferenceRow,
    milliseconds: f64,
    simulated: impl Fn(&World) -> Option<Nanos> + Send + Sync + 'static,
) -> Observation {
    let seconds = move |files: &World| simulated(files).map_or(f64::INFINITY, Nanos::seconds);
    Observation::of(row, milliseconds * 1e-3, "s", Measure::Other(Box::new(seconds)))
}

/// Table 3, table 4 and the crossover of section 3.3 on the Xiaomi 10.
pub(super) fn mandheling_operators() -> Result<Vec<Observation>> {
    let paper = Paper::load(MANDHELING)?;
    let mut observations = Vec::new();
    let map = Bytes((paper.number("table3", "map")? * operators::MIB) as u64);
    for (row, milliseconds) in paper.rows("table3") {
        let on_dsp = row.method == "dsp";
        observations.push(other(row, milliseconds, move |World { device, stack, .. }| {
            operators::irregular(device, stack, map, on_dsp)
        }));
    }
    for (row, milliseconds) in paper.rows("table4") {
        let Some((size, batch)) = operators::setting(&row.subject, &row.method) else { continue };
        observations.push(other(row, milliseconds, move |World { device, stack, .. }| {
            operators::called_alone(device, stack, size, batch)
        }));
    }
    for (row, milliseconds) in paper.rows("section3.3") {
        observations
            .push(other(row, milliseconds, move |World { device, stack, .. }| operators::crossing(device, stack, map)));
    }
    Ok(observations)
}

/// The steps of figure 10 on the Xiaomi 10.
pub(super) fn mandheling_steps() -> Result<Vec<Observation>> {
    let paper = Paper::load(MANDHELING)?;
    let mut observations = Vec::new();
    let batch = paper.number("figure10", "batch")? as u64;
    for (row, seconds) in paper.rows("figure10") {
        let Some(scenario) = batches::of_step(&row.method, "resnet34", batch) else { continue };
        let plans = plans(&paper, "figure10", &scenario)?;
        observations.push(Observation::of(row, seconds, "s", Measure::Run(plans)));
    }
    Ok(observations)
}

/// The times of the two CPU engines in tables 7 and 8, and the preparation of section 3.6.
pub(super) fn mandheling_cpu() -> Result<Vec<Observation>> {
    let paper = Paper::load(MANDHELING)?;
    let mut observations = engine(&paper, false, true)?;
    for (row, milliseconds) in paper.rows("section3.6").filter(|(row, _)| row.method == "mnn") {
        let plan = paper.plan(&operators::preparing("mnn", paper.number("section3.6", "batch")? as u64))?;
        observations.push(other(row, milliseconds, move |files| {
            let machine = plan.machine().under(files.device.clone(), files.stack.clone()).ok()?;
            Some(operators::preparation(&plan, &machine))
        }));
    }
    Ok(observations)
}

/// The times, or energies, of Mandheling or of the CPU engines in tables 7 and 8.
pub(super) fn mandheling_engine(of_mandheling: bool, times: bool) -> Result<Vec<Observation>> {
    engine(&Paper::load(MANDHELING)?, of_mandheling, times)
}

fn engine(paper: &Paper, of_mandheling: bool, times: bool) -> Result<Vec<Observation>> {
    let mut observations = Vec::new();
    let is_time = |row: &ReferenceRow| row.metric.starts_with("time") || row.metric == "clock-hours";
    let is_energy = |row: &ReferenceRow| row.metric.starts_with("energy");
    let wanted = |row: &ReferenceRow| {
        (row.method == "mandheling") == of_mandheling && if times { is_time(row) } else { is_energy(row) }
    };
    let batch = paper.number("table7", "batch")? as u64;
    for (row, value) in paper.rows("table7").filter(|(row, _)| wanted(row)) {
        let Some(scenario) = tables::of_cores(&row.subject, &row.method, &row.metric, batch) else { continue };
        observations.push(of_batch(row, value, times, plans(paper, "table7", &scenario)?));
    }
    let batches = paper.number("table8", "batches-per-round")?;
    for (row, value) in paper.rows("table8").filter(|(row, _)| wanted(row)) {
        let rounds = tables::rounds(&paper.reference, row);
        let Some((scenario, rounds)) = tables::of_training(&row.subject, &row.method, batch).zip(rounds) else {
            continue;
        };
        // Hours and watt-hours for all batches.
        let each = value * 3600.0 / (rounds * batches);
        observations.push(of_batch(row, each, times, plans(paper, "table8", &scenario)?));
    }
    Ok(observations)
}

/// Seconds or joules of a batch: if only the CPU runs, batches are equal, and one is the sum of its operators.
fn of_batch(row: &ReferenceRow, observed: f64, is_time: bool, mut plans: Vec<Plan>) -> Observation {
    let alone = plans.len() == 1 && plans.iter().all(|plan| plan.machine().dsp.is_none());
    let only = if alone { plans.pop() } else { None };
    let measure = match (only, is_time) {
        (Some(plan), true) => Measure::Time(Part::Iteration, Box::new(plan)),
        (Some(plan), false) => Measure::EnergyOfSum(Box::new(plan)),
        (None, true) => Measure::Run(plans),
        (None, false) => Measure::Energy(plans),
    };
    Observation::of(row, observed, if is_time { "s" } else { "J" }, measure)
}

/// Figure 2: the ratio of a phone that is short of memory to one that is not, where it is above zero.
pub(super) fn fedhybrid_reclaim() -> Result<Vec<Observation>> {
    let Paper { reference, readings, cache, .. } = &Paper::load(FEDHYBRID)?;
    let mut observations = Vec::new();
    let is_of = |known: &&Artefact| known.paper == FEDHYBRID && ["figure2a", "figure2b"].contains(&known.id);
    for artefact in ARTEFACTS.iter().filter(is_of) {
        let rows: Vec<&ReferenceRow> = reference.of(FEDHYBRID, artefact.id).collect();
        let kept = Kept::default();
        let (learn, full, learned, trace) = (false, false, &Default::default(), None);
        let context =
            Context { seed: 0, learn, full, artefact, rows, reference, readings, cache, trace, kept: &kept, learned };
        for row in context.rows.iter().filter(|row| row.role() == Role::Fit) {
            let Some(observed) = row.number().filter(|number| *number > 0.0) else { continue };
            let of_row = figure2::RoundsOfRow::new(&context, row).map_err(CommandError::failed)?;
            let Some(of_row) = of_row else { continue };
            let plans = of_row.rounds.iter().map(|round| context.plan(round)).collect::<Result<Vec<_>, _>>();
            let plans = plans.map_err(CommandError::failed)?;
            let simulated = move |files: &World| {
                let span = |plan: &Plan| Some(plan.run_under(files.system.as_ref()?)?.phone?.run);
                let spans = plans.iter().map(span).collect::<Option<Vec<_>>>();
                spans.and_then(|spans| of_row.answer(&spans)).unwrap_or(f64::INFINITY)
            };
            let unit = if row.unit == "percent" { "%" } else { "x" };
            observations.push(Observation::of(row, observed, unit, Measure::Other(Box::new(simulated))));
        }
    }
    Ok(observations)
}
