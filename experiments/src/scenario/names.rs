//! Names of devices, networks, policies, stacks and systems: which of them nothing has, and which stand for several.

use haversack_policies::registry;
use haversack_workloads::models::{self, MODELS};

use super::error::{Fault, Mistakes};
use super::world::OF_TRACE;
use super::{Key, Scenario, workload};
use crate::cache::Cache;

/// The words with which a sweep names several devices or policies.
const GROUPS: [&str; 4] = ["all", "phones", "boards", "gpus"];

/// Refuses a word that names several things where one is wanted.
pub(super) fn check_one(key: Key, text: &str) -> Result<(), Fault> {
    let list = match key {
        Key::Device => "devices",
        Key::Model => "models",
        Key::Policy => "policies",
        Key::Stack => "stacks",
        Key::System => "systems",
        _ => return Ok(()),
    };
    if !GROUPS.contains(&text) {
        return Ok(());
    }
    let expected = format!("one {}, an id of `haversack list {list}`", key.name());
    Err(Fault::Value { expected, found: format!("'{text}'"), hint: "; several are for `haversack sweep`".to_owned() })
}

/// What is said of a text that holds several values.
pub(super) fn several(text: &str) -> String {
    let is_list = text.contains([',', ' ']) || text == "all";
    if is_list { "; several values are for `haversack sweep`".to_owned() } else { String::new() }
}

impl Scenario {
    /// Takes note of every name that nothing has.
    pub(crate) fn unknown_names(&self, cache: &Cache, mistakes: &mut Mistakes) {
        for key in [Key::Device, Key::Stack, Key::Model, Key::Policy, Key::System] {
            self.unknown_name(key, cache, mistakes);
        }
    }

    /// Takes note of the name that `key` has, if nothing has it.
    pub(crate) fn unknown_name(&self, key: Key, cache: &Cache, mistakes: &mut Mistakes) {
        let fault = |error: Fault| self.error(key, error);
        let found = match key {
            Key::Device | Key::DeviceSet => self.load_device(cache).map(|_| ()),
            Key::Stack => self.load_stack(cache, self.stack.as_deref().unwrap_or_default()).map(|_| ()),
            Key::System | Key::SystemSet => self.load_system(cache).map(|_| ()),
            Key::Policy => registry::find(&self.policy).map(|_| ()).map_err(|error| fault(error.into())),
            // One that there is takes its time to be built, and is only asked for its name.
            Key::Model if workload::is_file(&self.model) || MODELS.iter().any(|known| known.id == self.model) => Ok(()),
            Key::Model => models::build(&self.model, None).map(|_| ()).map_err(|error| fault(error.into())),
            _ => Ok(()),
        };
        let is_given = match key {
            Key::Device | Key::DeviceSet => !["", OF_TRACE].contains(&self.device.as_str()),
            Key::Model => !self.model.is_empty(),
            Key::Stack => self.stack.is_some(),
            Key::System | Key::SystemSet => self.system.is_some(),
            _ => true,
        };
        if let (true, Err(error)) = (is_given, found) {
            mistakes.add(error);
        }
    }
}
