//! What calibrations are fitted to, by its name: the rows of papers, and those of measured sets.

use super::declared::{Calibration, Observations};
use super::observation::{Measure, Observation, Part};
use super::papers;
use crate::cache::Cache;
use crate::error::{CommandError, Result};
use crate::measured_set::{Row, Set, Subject};
use crate::papers::reference::Role;
use crate::run::Plan;
use crate::scenario::Scenario;
use crate::truth;

/// The observations that `calibration` names.
///
/// # Errors
/// An embedded file that is wrong, or a scenario that does not run.
pub(super) fn of(calibration: &Calibration) -> Result<Vec<Observation>> {
    match calibration.observations {
        Observations::PytorchTimings
        | Observations::GpuSteps
        | Observations::PhoneInference
        | Observations::MnnPhones
        | Observations::JetsonTx2 => measured(calibration, Role::Fit),
        Observations::SageTable1 => papers::sage_table1(calibration),
        Observations::DafTable2 => papers::daf_table2(),
        Observations::MandhelingOperators => papers::mandheling_operators(),
        Observations::MandhelingSteps => papers::mandheling_steps(),
        Observations::MandhelingCpu => papers::mandheling_cpu(),
        Observations::MandhelingCpuEnergy => papers::mandheling_engine(false, false),
        Observations::MandhelingDsp => papers::mandheling_engine(true, true),
        Observations::MandhelingDspEnergy => papers::mandheling_engine(true, false),
        Observations::FedhybridFigure2 => papers::fedhybrid_reclaim(),
    }
}

/// The rows of role `check` beside those that are fitted, of observations that belong to no paper; the papers'
/// are shown by `reproduce`.
///
/// # Errors
/// As [`of`].
pub(super) fn checks(calibration: &Calibration) -> Result<Vec<Observation>> {
    match calibration.observations {
        Observations::GpuSteps | Observations::PhoneInference | Observations::MnnPhones | Observations::JetsonTx2 => {
            measured(calibration, Role::Check)
        }
        _ => Ok(Vec::new()),
    }
}

/// The rows of `role` of the measured set that `calibration` names, on its devices.
fn measured(calibration: &Calibration, role: Role) -> Result<Vec<Observation>> {
    let set = truth::embedded(&calibration.rows);
    let set = Set::embedded(set.ok_or_else(|| CommandError::failed(format!("there is no {}", calibration.rows)))?)?;
    let cache = Cache::new();
    let observation = |row: Row| {
        let Subject::Training { scenario, .. } = row.subject else {
            return Err(CommandError::failed(format!("{} is not of training", row.id)));
        };
        let plan = Plan::new(&Scenario { iterations: Some(1), ..*scenario }, &cache)?;
        let observed = row.measured.unwrap_or_default() * row.quantity.size;
        let part = match row.quantity.name.as_str() {
            "forward_s" => Part::Forward,
            "backward_s" => Part::Backward,
            _ if matches!(calibration.observations, Observations::GpuSteps | Observations::JetsonTx2) => {
                return Ok(Observation { id: row.id, observed, unit: "s", measure: Measure::Run(vec![plan]) });
            }
            _ => Part::Iteration,
        };
        Ok(Observation::time(row.id, observed, part, plan))
    };
    let is_of = |row: &Row| {
        let Some(scenario) = row.scenario() else { return false };
        let device = &scenario.device;
        let steps = matches!(calibration.observations, Observations::MnnPhones | Observations::JetsonTx2);
        let is_step = row.quantity.name == "iteration_time_s" && !scenario.inference;
        row.role == role
            && (!steps || is_step)
            && (*device == calibration.device || calibration.others.contains(device))
    };
    set.rows.into_iter().filter(is_of).map(observation).collect()
}
