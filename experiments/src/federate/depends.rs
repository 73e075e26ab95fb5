//! The dependencies of a federation's rounds, by which earlier learning is recognised and reused.

use haversack_devices::{ConstantEntry, load, load_stack, load_system};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::UsageModel;
use serde_json::Value;

use super::iteration::{cost, scenario, with_memory_to_spare};
use super::learner::algorithm;
use super::specification::{Phones, Specification};
use crate::measured::Training;
use crate::scenario::Scenario;
use crate::{Cache, CommandError, Result, train};

impl Specification {
    /// The learning and all its dependencies except the seed: the specification, the data, the constants of the phones,
    /// their system and their users, and the cost of an iteration on each device. The participants of a round depend on
    /// how long phones take, and with some selectors on what was learned: a change in any of these requires learning
    /// again. `None` if nothing is learned.
    ///
    /// # Errors
    /// Data, a network or a calibration that cannot be loaded.
    pub(crate) fn learned(&self, cache: &Cache) -> Result<Option<Training>> {
        let Some(learning) = &self.learning else { return Ok(None) };
        let mut record = self.record();
        if let Some(keys) = record.get_mut("specification").and_then(Value::as_object_mut) {
            keys.remove("seed");
        }
        let set = learning.data_set(cache)?;
        let (data, digest) =
            set.map_or_else(|| ("made for each client".to_owned(), 0), |set| (set.id.clone(), set.digest()));
        let phones = Phones::draw(self)?;
        let algorithm = algorithm(self, &phones, cache)?;
        let mut depends = format!("{} {digest:016x} {algorithm:?}", Value::Object(record));
        let mut constants = Vec::new();
        for kind in &phones.kinds {
            let found = cost(&with_memory_to_spare(scenario(self, kind, None)), cache)?;
            constants.push(found.map_or_else(|why| why, |cost| format!("{cost:?}")));
            constants.extend(load(&kind.id)?.entries().iter().map(told));
        }
        let stack = self.trained.stack.as_deref().map(load_stack).transpose()?;
        constants.extend(stack.iter().flat_map(|stack| stack.entries()).map(|entry| told(&entry)));
        let users = UsageModel::built_in().map_err(CommandError::failed)?.entries().into_iter();
        let apps = FootprintTable::built_in().map_err(CommandError::failed)?.entries();
        let system = load_system(&self.system)?.entries().into_iter();
        constants.extend(system.chain(users).chain(apps).map(|entry| told(&entry)));
        constants.iter().for_each(|entry| depends += &format!(" {entry}"));
        let (Scenario { model, policy, batch, .. }, selector, rule) =
            (&self.trained, self.rules.selector, &learning.rule);
        let how = format!("{model} under {policy}, batch {batch}, {selector:?}, {rule:?}, {} rounds", self.rounds);
        Ok(Some(Training::wanted(&learning.stand_in, &data, how, &depends)))
    }

    /// The accuracy of a guess in percent, and its standard deviation; `None` if nothing is learned, or data
    /// are made for clients.
    ///
    /// # Errors
    /// Data that cannot be loaded.
    pub(crate) fn chance(&self, cache: &Cache) -> Result<Option<[f64; 2]>> {
        let Some(learning) = &self.learning else { return Ok(None) };
        Ok(learning.data_set(cache)?.map(|set| train::chance(&set)))
    }
}

/// A constant, without its source.
fn told(entry: &ConstantEntry) -> String {
    format!("{} {:?}", entry.name, entry.value)
}
