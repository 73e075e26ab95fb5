//! What the papers tell a calibration: their reference rows and the numbers of their readings.

use crate::cache::Cache;
use crate::error::CommandError;
use crate::papers::readings::{Readings, Value};
use crate::papers::reference::{Reference, ReferenceRow, Role};
use crate::run::Plan;
use crate::scenario::Scenario;

/// A paper, with what was read in it.
pub(super) struct Paper {
    id: &'static str,
    pub(super) reference: Reference,
    pub(super) readings: Readings,
    pub(super) cache: Cache,
}

impl Paper {
    pub(super) fn load(id: &'static str) -> Result<Self, CommandError> {
        let reference = Reference::load().map_err(CommandError::failed)?;
        let readings = Readings::load(&reference).map_err(CommandError::failed)?;
        Ok(Self { id, reference, readings, cache: Cache::new() })
    }

    /// The rows of `artefact` that a constant may be fitted to, and their numbers.
    pub(super) fn rows(&self, artefact: &str) -> impl Iterator<Item = (&ReferenceRow, f64)> {
        let fit = self.reference.of(self.id, artefact).filter(|row| row.role() == Role::Fit);
        fit.filter_map(|row| Some((row, row.number()?)))
    }

    /// What the readings of `artefact` declare as `id`.
    pub(super) fn reading(&self, artefact: &str, id: &str) -> Result<&Value, CommandError> {
        let found = self.readings.reading(self.id, artefact, id).map(|reading| &reading.value);
        found.ok_or_else(|| CommandError::failed(format!("{}/{artefact} declares no reading '{id}'", self.id)))
    }

    /// The number that the readings of `artefact` declare as `id`.
    pub(super) fn number(&self, artefact: &str, id: &str) -> Result<f64, CommandError> {
        match self.reading(artefact, id)? {
            Value::Number(number) => Ok(*number),
            _ => Err(CommandError::failed(format!("{}/{artefact}: the reading '{id}' is no number", self.id))),
        }
    }

    pub(super) fn plan(&self, scenario: &Scenario) -> Result<Plan, CommandError> {
        Ok(Plan::new(scenario, &self.cache)?)
    }
}
