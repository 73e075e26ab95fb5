//! A scenario: everything that determines one run, from a TOML file, from flags, or from a program.
//!
//! [`Scenario`] has the values that were given; [`Scenario::resolve_in`] fills in defaults and loads device and stack.
//! It depends neither on commands nor on runs.

mod apps;
mod document;
mod error;
mod flags;
mod key;
mod quantity;
mod resolve;
mod surroundings;
mod trace_from;
mod user_trace;
mod value;
pub mod workload;
mod world;

pub use apps::{PhoneApps, app_changes};
pub(crate) use apps::{phone_in_use, split as trace_file};
pub use document::{Document, Field, Item};
pub use error::{Fault, Origin, ScenarioError};
pub(crate) use error::{Mistakes, Result};
pub use flags::ScenarioFlags;
pub use key::{BudgetBytes, DEFAULT_BATCH, DEFAULT_ITERATIONS, Key, Placed, Scenario, Takes};
pub use quantity::{
    Budget, BudgetReference, BudgetWalls, InputShape, QuantityError, Step, parse_size, parse_span, parse_time,
    size_text, time_text,
};
pub use resolve::{GraphKind, Resolved};
pub use surroundings::Covered;
pub use trace_from::TraceFrom;
pub(crate) use trace_from::beginning;
pub use value::{Cell, Kind, Literal};
pub use world::{Holder, World, moved};

use std::path::Path;

use haversack_workloads::onnx::Reading;

use crate::Cache;

impl Scenario {
    /// Reads the scenario of the TOML file `file`, if one is given, overridden by the TOML text `given`, which
    /// errors call `name`.
    ///
    /// # Errors
    /// A file that cannot be read; text that is not TOML; every unknown key, with the nearest valid one; every value
    /// that its key cannot have; no device or no model. Each names file, line and key.
    pub fn with(file: Option<&Path>, name: &str, given: &str) -> Result<Self> {
        let (mut scenario, mut mistakes) = Self::begin(file)?;
        let document = Document::parse(name, given, &[], &mut mistakes)?;
        scenario.apply(&document, &mut mistakes);
        mistakes.note(scenario.complete(document.origin(0)));
        scenario.finish(mistakes)
    }

    /// Reads the valid part of the scenario in `file`, if one is given, and collects the mistakes.
    pub(crate) fn begin(file: Option<&Path>) -> Result<(Self, Mistakes)> {
        let (mut scenario, mut mistakes) = (Self::new("", ""), Mistakes::default());
        if let Some(file) = file {
            let document = Document::read(file, &mut mistakes)?;
            scenario.apply(&document, &mut mistakes);
        }
        Ok((scenario, mistakes))
    }

    /// Returns the scenario, unless there is a mistake; then unknown names are reported as mistakes, too.
    pub(crate) fn finish(self, mut mistakes: Mistakes) -> Result<Self> {
        if !mistakes.is_empty() {
            self.unknown_names(&Cache::new(), &mut mistakes);
        }
        mistakes.finish().map(|()| self)
    }

    /// Sets every field of `document` that has a valid value.
    fn apply(&mut self, document: &Document, mistakes: &mut Mistakes) {
        for (key, field) in &document.fields {
            if let Item::Table(parameters) = &field.item {
                for parameter in parameters {
                    let name = format!("{}.{}", key.name(), parameter.name);
                    if let Some(value) = mistakes.note(document.one(parameter, &name)) {
                        self.set_entry(*key, &parameter.name, value, document.origin(parameter.line));
                    }
                }
            } else if let Some(value) = mistakes.note(document.one(field, key.name())) {
                mistakes.note(self.set(*key, value, document.origin(field.line)));
            }
        }
    }

    /// Sets an entry of a key that takes a table: a policy parameter, whose name may include the policy's, as in
    /// `sage.order`, or a constant of the device or of the system.
    pub fn set_entry(&mut self, key: Key, name: &str, value: &Literal, origin: Origin) {
        let table = match key {
            Key::DeviceSet => &mut self.device_set,
            Key::SystemSet => &mut self.system_set,
            _ => &mut self.set,
        };
        table.insert(name.to_owned(), value.text.clone());
        self.origins.insert(key, origin);
    }

    /// Checks that device and model are given; `by` names the missing source in errors.
    ///
    /// # Errors
    /// Each key that is missing.
    pub fn complete(&self, by: Origin) -> Result<()> {
        let mut mistakes = Mistakes::default();
        for (key, value, expected) in [
            (Key::Device, &self.device, "an id of `haversack list devices`, such as galaxy-s10"),
            (Key::Model, &self.model, "an id of `haversack list models`, such as resnet50"),
        ] {
            if value.is_empty() {
                mistakes.add(ScenarioError::new(by.clone(), key.name(), Fault::Missing(expected)));
            }
        }
        mistakes.finish()
    }

    /// The options for reading the network, if it comes from a file.
    pub(crate) fn reading(&self) -> Reading {
        let names = [&self.trainable, &self.frozen, &self.outputs].map(Option::as_deref);
        workload::reading(self.input.as_ref(), names)
    }

    /// An error about `key`, with the origin of its value.
    pub(crate) fn error(&self, key: Key, fault: impl Into<Fault>) -> ScenarioError {
        ScenarioError::new(self.origins.get(&key).cloned().unwrap_or_default(), key.name(), fault)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// A value that the key cannot have.
    pub fn set(&mut self, key: Key, value: &Literal, origin: Origin) -> Result<()> {
        self.origins.insert(key, origin);
        self.assign(key, value).map_err(|fault| self.error(key, fault))
    }
}
