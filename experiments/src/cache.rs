//! What runs share: devices, stacks, networks, graphs, machines, and what `original` needs.
//!
//! A [`Cache`] is made by whoever runs more than one scenario and handed down; there is no global one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use haversack_devices::units::Bytes;
use haversack_devices::work::Precision;
use haversack_devices::{Device, Stack, System};
use haversack_training::{Machine, Record, RunError};
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::lowering::Gradients;
use haversack_workloads::{Network, TrainingGraph};

use crate::run::LeastBudget;
use crate::scenario::{GraphKind, InputShape, Step};
use crate::trace_command::UserTrace;

/// The place of one value, which one thread at a time makes.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// Values that are made once, whichever thread asks first; others wait for it.
pub struct Memo<K, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self { slots: Mutex::new(HashMap::new()) }
    }
}

impl<K: Hash + Eq, V> Memo<K, V> {
    /// The value of `key`, made by `make` where there is none; an error is not kept.
    ///
    /// # Errors
    /// What `make` fails with.
    pub fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        // A thread that panicked while it held a lock has left a value or none, never half of one.
        let slot = Arc::clone(self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        let made = Arc::new(make()?);
        *value = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// By what graphs are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GraphKey {
    /// The model: an id, or a path.
    pub model: String,
    /// The shape of a sample; the model's own where none is given.
    pub input: Option<InputShape>,
    /// Who runs it, and how far it is optimised.
    pub kind: GraphKind,
    /// How weights are updated.
    pub optimiser: Optimiser,
    /// When gradients are applied.
    pub gradients: Gradients,
    /// The number format of its tensors.
    pub precision: Precision,
}

/// Everything that runs share.
#[derive(Default)]
pub struct Cache {
    pub(crate) devices: Memo<String, Device>,
    pub(crate) stacks: Memo<String, Stack>,
    pub(crate) systems: Memo<String, System>,
    pub(crate) networks: Memo<(String, Option<InputShape>), Network>,
    pub(crate) graphs: Memo<GraphKey, TrainingGraph>,
    pub(crate) machines: Memo<String, Machine>,
    pub(crate) traces: Memo<String, Vec<Step>>,
    pub(crate) user_traces: Memo<(String, u64), UserTrace>,
    /// What `original` needs of memory, by the configuration.
    pub(crate) needs: Memo<String, Bytes>,
    /// Runs that several artefacts share.
    pub(crate) records: Memo<String, Record>,
    /// The least budgets, or why there are none, by the configuration.
    pub(crate) least: Memo<String, Result<LeastBudget, RunError>>,
}

impl Cache {
    /// Nothing shared yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
