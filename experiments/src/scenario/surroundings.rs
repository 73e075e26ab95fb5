//! What happens around a run while it goes on: budgets over time, and the phone that it shares with apps.

use std::path::Path;
use std::sync::Arc;

use haversack_devices::{Device, load_system};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::UsageModel;
use haversack_training::phone::AppChange;
use haversack_training::{Machine, Phone};

use super::error::{Fault, ScenarioError};
use super::key::Key;
use super::user_trace::{OfUser, UserTrace};
use super::{Budget, PhoneApps, Scenario, Step, budget_trace, generated_apps, phone};
use crate::cache::Cache;

/// Memory budgets over time, and what apps do.
pub(super) type Traced = (Arc<Vec<Step>>, Option<Vec<AppChange>>);

impl Scenario {
    /// The trace: memory budgets over time, or what the apps of the phone do.
    pub(super) fn read_trace(&self, cache: &Cache, notes: &mut Vec<String>) -> Result<Traced, ScenarioError> {
        let Some(named) = &self.trace else { return Ok((Arc::default(), None)) };
        let traced = if budget_trace::is_table(named) {
            match &self.read_table(Key::Trace, named, cache, notes)?.holds {
                OfUser::Apps(apps) => (Arc::default(), Some(apps.clone())),
                OfUser::Available(steps) => {
                    let steps = steps.iter().map(|&(at, bytes)| Step { at, budget: Budget::Bytes(bytes) });
                    (Arc::new(steps.collect()), None)
                }
            }
        } else {
            let origin = self.origins.get(&Key::Trace).cloned().unwrap_or_default();
            (cache.get(named.display().to_string(), || budget_trace::read(named, &origin))?, None)
        };
        let refused = |key: Key, message: &str| Err(self.error(key, Fault::Refused(message.to_owned())));
        if self.apps.is_some() && traced.1.is_some() {
            return refused(Key::Apps, "the trace says what apps do already; leave one of the two out");
        }
        if !self.budget_walls.memory.is_empty() && !traced.0.is_empty() {
            return refused(
                Key::BudgetWalls,
                "the trace has memory budgets over time already; leave one of the two out",
            );
        }
        Ok(traced)
    }

    /// One user's part of the table that `key` names.
    fn read_table(
        &self,
        key: Key,
        named: &Path,
        cache: &Cache,
        notes: &mut Vec<String>,
    ) -> Result<Arc<UserTrace>, ScenarioError> {
        let (path, user) = budget_trace::split(named);
        let place = (named.display().to_string(), self.seed);
        let read = cache.get(place, || UserTrace::read(&path, user.as_deref(), self.seed));
        let read = read.map_err(|error| self.error(key, Fault::Refused(error.to_string())))?;
        notes.push(format!("the trace is of {} and covers {}; after that all stays as it is", read.user, read.length));
        Ok(read)
    }

    /// What the apps do that are named beside the trace; nothing if none are.
    pub(super) fn named_apps(
        &self,
        cache: &Cache,
        notes: &mut Vec<String>,
    ) -> Result<Option<Vec<AppChange>>, ScenarioError> {
        let refused = |message: String| self.error(Key::Apps, Fault::Refused(message));
        match &self.apps {
            None | Some(PhoneApps::None) => Ok(None),
            Some(PhoneApps::Table(named)) => match &self.read_table(Key::Apps, named, cache, notes)?.holds {
                OfUser::Apps(apps) => Ok(Some(apps.clone())),
                OfUser::Available(_) => Err(refused(format!("{} says nothing of apps", named.display()))),
            },
            Some(PhoneApps::Synthetic { user, from, length }) => {
                let made = cache.get((user.clone(), self.seed, *from, *length), || {
                    let model = UsageModel::built_in().map_err(|error| refused(error.to_string()))?;
                    let table = FootprintTable::built_in().map_err(|error| refused(error.to_string()))?;
                    Ok::<_, ScenarioError>(generated_apps(&model, &table, (user, self.seed), (*from, *length)))
                });
                Ok(Some(made?.as_ref().clone()))
            }
        }
    }

    /// The phone in use under the operating system, if one is named.
    pub(super) fn phone(
        &self,
        cache: &Cache,
        device: &Device,
        machine: &Machine,
        apps: Vec<AppChange>,
    ) -> Result<Option<Arc<Phone>>, ScenarioError> {
        let Some(id) = &self.system else {
            return match self.trainer_adj {
                Some(_) => {
                    let message = "without an operating system there is no low-memory killer; name a system too";
                    Err(self.error(Key::TrainerAdj, Fault::Refused(message.to_owned())))
                }
                None => Ok(None),
            };
        };
        let system = cache.get(id.clone(), || load_system(id));
        let system = system.map_err(|error| self.error(Key::System, Fault::Calibration(Box::new(error))))?;
        let phone = phone::phone(device, &system, machine.cores(), apps, self.trainer_adj);
        phone.map(|phone| Some(Arc::new(phone))).map_err(|why| self.error(Key::System, Fault::Refused(why)))
    }
}
