//! What Mandheling's paper observed and may be fitted: single operators, engines on the CPU, the system itself.

use haversack_devices::units::Bytes;
use haversack_devices::{Device, Stack};

use super::declared::Files;
use super::observation::{Measure, Observation, Part};
use super::paper::Paper;
use crate::artefacts::mandheling::setting::timed;
use crate::artefacts::mandheling::{figure10, section3_3, section3_6, table3, table4, table7, table8};
use crate::error::CommandError;
use crate::papers::reference::ReferenceRow;
use crate::run::Plan;
use crate::scenario::Scenario;

const PAPER: &str = "mandheling";

/// The plans whose mean time, or energy, is that of a batch under `scenario`.
fn plans(paper: &Paper, artefact: &str, scenario: &Scenario) -> Result<Vec<Plan>, CommandError> {
    let warm_up = paper.number(artefact, "settled")? as u64;
    timed(scenario, warm_up).iter().map(|scenario| paper.plan(scenario)).collect()
}

fn other(
    row: &ReferenceRow,
    seconds: f64,
    simulated: impl Fn(&Device, &Stack) -> f64 + Send + Sync + 'static,
) -> Observation {
    let simulated = move |files: &Files| simulated(&files.device, &files.stack);
    Observation::of(row, seconds, "s", Measure::Other(Box::new(simulated)))
}

/// Table 3, table 4 and the crossing of section 3.3 on the Xiaomi 10.
pub(super) fn operators() -> Result<Vec<Observation>, CommandError> {
    let paper = Paper::load(PAPER)?;
    let mut observations = Vec::new();
    let map = Bytes((paper.number("table3", "map")? * table3::MIB) as u64);
    for (row, milliseconds) in paper.rows("table3") {
        let on_dsp = row.method == "dsp";
        observations.push(other(row, milliseconds * 1e-3, move |device, stack| {
            table3::irregular(device, stack, map, on_dsp).map_or(f64::INFINITY, |time| time.seconds())
        }));
    }
    for (row, milliseconds) in paper.rows("table4") {
        let Some((size, batch)) = table4::setting(&row.subject, &row.method) else { continue };
        observations.push(other(row, milliseconds * 1e-3, move |device, stack| {
            table4::called_alone(device, stack, size, batch).map_or(f64::INFINITY, |time| time.seconds())
        }));
    }
    for (row, milliseconds) in paper.rows("section3.3") {
        observations.push(other(row, milliseconds * 1e-3, move |device, stack| {
            section3_3::crossing(device, stack, map).map_or(f64::INFINITY, |time| time.seconds())
        }));
    }
    Ok(observations)
}

/// The steps of figure 10 on the Xiaomi 10.
pub(super) fn steps() -> Result<Vec<Observation>, CommandError> {
    let paper = Paper::load(PAPER)?;
    let mut observations = Vec::new();
    let batch = paper.number("figure10", "batch")? as u64;
    for (row, seconds) in paper.rows("figure10") {
        let Some(scenario) = figure10::of_step(&row.method, "resnet34", batch) else { continue };
        let plans = plans(&paper, "figure10", &scenario)?;
        observations.push(Observation::of(row, seconds, "s", Measure::Run(plans)));
    }
    Ok(observations)
}

/// The times of tables 7 and 8 of the two engines on the CPU, and the preparation of section 3.6.
pub(super) fn cpu() -> Result<Vec<Observation>, CommandError> {
    let paper = Paper::load(PAPER)?;
    let mut observations = engine(&paper, false, true)?;
    for (row, milliseconds) in paper.rows("section3.6").filter(|(row, _)| row.method == "mnn") {
        let plan = paper.plan(&section3_6::preparing("mnn", paper.number("section3.6", "batch")? as u64))?;
        observations.push(other(row, milliseconds * 1e-3, move |device, stack| {
            let machine = plan.machine().under(device.clone(), stack.clone());
            machine.map_or(f64::INFINITY, |machine| section3_6::preparation(&plan, &machine).seconds())
        }));
    }
    Ok(observations)
}

/// The times of tables 7 and 8 of Mandheling.
pub(super) fn dsp() -> Result<Vec<Observation>, CommandError> {
    engine(&Paper::load(PAPER)?, true, true)
}

/// The energies of tables 7 and 8, of Mandheling or of the engines on the CPU.
pub(super) fn energy(of_mandheling: bool) -> Result<Vec<Observation>, CommandError> {
    engine(&Paper::load(PAPER)?, of_mandheling, false)
}

fn engine(paper: &Paper, of_mandheling: bool, times: bool) -> Result<Vec<Observation>, CommandError> {
    let mut observations = Vec::new();
    let is_time = |row: &ReferenceRow| row.metric.starts_with("time") || row.metric == "clock-hours";
    let is_energy = |row: &ReferenceRow| row.metric.starts_with("energy");
    let wanted = |row: &ReferenceRow| {
        (row.method == "mandheling") == of_mandheling && if times { is_time(row) } else { is_energy(row) }
    };
    let batch = paper.number("table7", "batch")? as u64;
    for (row, value) in paper.rows("table7").filter(|(row, _)| wanted(row)) {
        let Some(scenario) = table7::of_row(&row.subject, &row.method, &row.metric, batch) else { continue };
        observations.push(of_batch(row, value, times, plans(paper, "table7", &scenario)?));
    }
    let batches = paper.number("table8", "batches-per-round")?;
    for (row, value) in paper.rows("table8").filter(|(row, _)| wanted(row)) {
        let rounds = table8::rounds(&paper.reference, row);
        let Some((scenario, rounds)) = table8::of_row(&row.subject, &row.method, batch).zip(rounds) else { continue };
        // Hours and watt-hours of all batches.
        let each = value * 3600.0 / (rounds * batches);
        observations.push(of_batch(row, each, times, plans(paper, "table8", &scenario)?));
    }
    Ok(observations)
}

/// Seconds or joules of a batch: where only the CPU runs, batches are alike, and one is the sum of its operators.
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
