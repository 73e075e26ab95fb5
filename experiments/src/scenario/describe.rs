//! A resolved scenario as named cells: the `scenario` object of a result, and the first columns of a sweep.

use std::collections::BTreeMap;

use haversack_devices::units::Bytes;
use serde_json::{Map, Value, json};

use super::key::Key;
use super::{ALLOCATORS, GRADIENTS, OPTIMISERS, Scenario, name_of, time_text};

/// One value of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text, or nothing.
    Text(Option<String>),
    /// A whole number, or nothing.
    Whole(Option<u64>),
    /// A decimal number, or nothing.
    Real(Option<f64>),
    /// Names and values.
    Settings(BTreeMap<String, String>),
}

impl Cell {
    fn text(text: impl ToString) -> Self {
        Self::Text(Some(text.to_string()))
    }

    /// The cell as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Whole(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Settings(settings) => json!(settings),
        }
    }
}

impl Scenario {
    /// The value of `key`.
    #[must_use]
    pub fn cell(&self, key: Key) -> Cell {
        match key {
            Key::Device => Cell::text(&self.device),
            Key::Stack => Cell::Text(self.stack.clone()),
            Key::Model => Cell::text(&self.model),
            Key::Input => Cell::Text(self.input.as_ref().map(ToString::to_string)),
            Key::Batch => Cell::Whole(Some(self.batch)),
            Key::Policy => Cell::text(&self.policy),
            Key::Set => Cell::Settings(self.set.clone()),
            Key::Precision => Cell::text(self.precision),
            Key::Optimizer => Cell::text(name_of(self.optimizer, &OPTIMISERS)),
            Key::Graph => Cell::Text(self.graph.map(|variant| variant.id().to_owned())),
            Key::Gradients => Cell::text(name_of(self.gradients, &GRADIENTS)),
            Key::Allocator => Cell::Text(self.allocator.map(|kind| name_of(kind, &ALLOCATORS).to_owned())),
            Key::System => Cell::Text(self.system.clone()),
            Key::Cores => Cell::Text(self.cores.map(|cores| cores.to_string())),
            Key::Frequency => Cell::text(self.frequency),
            Key::AmbientC => Cell::Real(self.ambient_c),
            Key::MemoryBudget => Cell::Text(self.memory_budget.map(|budget| budget.to_string())),
            Key::ActivationBudget => Cell::Text(self.activation_budget.map(|budget| budget.to_string())),
            Key::TimeBudget => Cell::Text(self.time_budget.map(time_text)),
            Key::Trace => Cell::Text(self.trace.as_ref().map(|path| path.display().to_string())),
            Key::Iterations => Cell::Whole(Some(u64::from(self.iterations))),
            Key::Seed => Cell::Whole(Some(self.seed)),
        }
    }

    /// All keys with their values, and the budgets in bytes where they are known.
    #[must_use]
    pub fn cells(&self, memory: Option<Bytes>, activations: Option<Bytes>) -> Vec<(String, Cell)> {
        let mut cells = Vec::new();
        for key in Key::ALL {
            cells.push((key.name().to_owned(), self.cell(key)));
            let bytes = match key {
                Key::MemoryBudget => memory,
                Key::ActivationBudget => activations,
                _ => continue,
            };
            cells.push((format!("{}_bytes", key.name()), Cell::Whole(bytes.map(|bytes| bytes.0))));
        }
        cells
    }

    /// The text of `keys`, by which results that depend on nothing else are shared.
    #[must_use]
    pub fn fingerprint(&self, keys: impl IntoIterator<Item = Key>) -> String {
        let named = keys.into_iter().map(|key| (key.name().to_owned(), self.cell(key).to_json()));
        Value::Object(named.collect::<Map<String, Value>>()).to_string()
    }
}
